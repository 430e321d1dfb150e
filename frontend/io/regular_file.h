// SPDX-License-Identifier: Apache-2.0
// Files that a text or a folder of somebody else names. Only regular files are opened, so that reading one neither waits (a FIFO), nor has
// an effect (a device), nor goes on for ever (/dev/zero). Files that the user names go through file.h, which takes pipes and devices too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "ir/support/result.h"

namespace lockstep::io {

/// Whether the last part of a path may be a link.
enum class Links : uint8_t { Follow, Refuse };

/// A regular file, open for reading.
class RegularFile {
 public:
  RegularFile(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}
  RegularFile(RegularFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}
  RegularFile& operator=(RegularFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    size_ = other.size_;
    return *this;
  }
  ~RegularFile();
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  /// The descriptor, which the caller closes.
  [[nodiscard]] int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
  uint64_t size_;
};

/// code "file.read"
Result<RegularFile> openRegularFile(const std::filesystem::path& path, Links links = Links::Follow);

/// The content of a regular file of at most `most_bytes`. code "file.read"
Result<std::string> readRegularTextFile(const std::filesystem::path& path, uint64_t most_bytes, Links links = Links::Follow);

/// The regular file `name` below `folder`: "models/mlp.cpp", or a path that begins with the folder's own. Refused are other absolute paths,
/// "..", parts that begin with a dot, and links that lead out of the folder. code "file.read"
Result<std::string> readTextFileBelow(const std::filesystem::path& folder, const std::filesystem::path& name, uint64_t most_bytes);

}  // namespace lockstep::io
