// SPDX-License-Identifier: Apache-2.0
// A folder of our own for files that nobody keeps.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "ir/support/result.h"

namespace lockstep::io {

/// Made new, for this user alone, below the system's folder for temporary files; removed at the end with all that is in it.
class TemporaryFolder {
 public:
  /// Its name begins with `prefix`. code "file.directory"
  static Result<TemporaryFolder> make(std::string_view prefix);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace lockstep::io
