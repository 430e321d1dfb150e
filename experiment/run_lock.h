// SPDX-License-Identifier: Apache-2.0
// One process at a time writes a run folder.
#pragma once

#include <filesystem>

#include "ir/support/result.h"

namespace lockstep::experiment {

/// The lock of a folder, held until this is destroyed or the process ends, however it ends.
class RunLock {
 public:
  /// Takes the lock with a file "lock" in the folder, which holds the number of this process. Errors "folder.busy" when another process
  /// holds it and "file.write". On a file system without locks it is given to everybody.
  static Result<RunLock> take(const std::filesystem::path& folder);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  RunLock(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace lockstep::experiment
