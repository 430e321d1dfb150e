// SPDX-License-Identifier: Apache-2.0
// Open files of POSIX.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace lockstep {

/// A file descriptor that closes itself; negative: none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { (void)close(); }
  [[nodiscard]] int get() const { return fd_; }
  /// Closes now; false when the system reports a late write error.
  [[nodiscard]] bool close();

 private:
  int fd_;
};

/// Fills `target`; false when that fails, with errno, and when the file ends before.
[[nodiscard]] bool readAll(int file, std::span<std::byte> target);
/// False when it fails, with errno.
[[nodiscard]] bool writeAll(int file, std::span<const std::byte> data);

}  // namespace lockstep
