// SPDX-License-Identifier: Apache-2.0
// A folder of our own: for files that nobody keeps, or to be filled before it is moved where it is wanted.
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
  /// Beside `path`, with the rights of any new folder: so that moveTo() can give it that name. Makes the parents of `path`. A process that
  /// is killed leaves it, with a name that ends in ".tmp-<pid>-<count>". code "file.directory"
  static Result<TemporaryFolder> makeBeside(const std::filesystem::path& path);
  /// Renames it, with all that is in it: `path` has the whole folder or what was there before. A folder that is there is replaced with
  /// `replace`, and else only if it is empty; code "file.directory".
  Status moveTo(const std::filesystem::path& path, bool replace);
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
