// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace lockstep::experiment {
namespace {

Failure cannotLock(const std::filesystem::path& path, int error) {
  return fail("file.write", fmt::format("'{}' cannot be written: {}", path.string(), std::generic_category().message(error)), {},
              "check that the folder exists, is writable and has room");
}

/// "process 1234", as the one that holds the lock wrote it.
std::string holderOf(int file) {
  std::array<char, 16> text{};
  const ssize_t count = ::pread(file, text.data(), text.size(), 0);
  const std::string_view written(text.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  const std::string_view number = written.substr(0, std::min(written.find_first_not_of("0123456789"), written.size()));
  return number.empty() ? "another process" : fmt::format("process {}", number);
}

}  // namespace

Result<RunLock> RunLock::take(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  while (true) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (file < 0) return cannotLock(path, errno);
    RunLock lock(path, file);
    struct stat opened{}, named{};
    if (::fstat(file, &opened) != 0 || !S_ISREG(opened.st_mode)) {
      lock.path_.clear();
      return cannotLock(path, EINVAL);
    }
    if (::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      lock.path_.clear();  // it is the other one's
      return fail("folder.busy", fmt::format("'{}' is in use: {} trains into it", folder.string(), holderOf(file)), {},
                  "wait until it ends or stop it, or name another folder (--out)");
    }
    // The one before us may have removed the file between our opening and our locking.
    const bool same = ::stat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
    if (!same) {
      lock.path_.clear();
      continue;
    }
    const std::string number = fmt::format("{}\n", ::getpid());
    // The number is for people: where the disk is full, the lock holds without it.
    if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, number.data(), number.size(), 0);
    return lock;
  }
}

RunLock::RunLock(RunLock&& other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

RunLock::~RunLock() {
  if (file_ < 0) return;
  // Removed while it is held, so that nobody's lock is removed but ours.
  if (!path_.empty()) ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace lockstep::experiment
