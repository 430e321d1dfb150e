// SPDX-License-Identifier: Apache-2.0
#include "console/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace lockstep::console {

void reserveStandardStreams() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. It is opened for the other direction, so that its use is still an error.
    (void)!::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

std::optional<std::string> flushStandardOutput() {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed_before) return std::nullopt;
  return errno != 0 ? std::generic_category().message(errno) : "an earlier part of it was lost";
}

}  // namespace lockstep::console
