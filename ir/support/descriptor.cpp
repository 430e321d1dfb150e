// SPDX-License-Identifier: Apache-2.0
#include "ir/support/descriptor.h"

#include <unistd.h>

#include <cerrno>

namespace lockstep {

bool Descriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0;
}

bool readAll(int file, std::span<std::byte> target) {
  while (!target.empty()) {
    const ssize_t count = ::read(file, target.data(), target.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    target = target.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool writeAll(int file, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t count = ::write(file, data.data(), data.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) data = data.subspan(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace lockstep
