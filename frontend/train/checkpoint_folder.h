// SPDX-License-Identifier: Apache-2.0
// A folder with the last checkpoints of a run. A process that is killed at any moment leaves a checkpoint behind that loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "frontend/train/trainer.h"

namespace lockstep {

/// Files step-000000000042.safetensors, one per save. Several processes may read a folder while one writes it.
class CheckpointFolder {
 public:
  /// Makes the folder if there is none and removes the unfinished files that killed writers left in it; checkpoints go only when one is
  /// saved. Keeps `keep_last` of them, 1 at least. Error "file.directory".
  explicit CheckpointFolder(std::filesystem::path folder, size_t keep_last = 3, Where where = Where::current());

  /// Writes a checkpoint, then removes those that are too many: the new one stays, and of the others the intact ones of the highest steps,
  /// `keep_last` in all. A damaged one is not counted, and goes only once it is older than all that stay. Gives the path of the new one.
  /// Error "file.write".
  std::filesystem::path save(const Trainer& trainer, const DataCursor& cursor = {}, Where where = Where::current());
  /// The checkpoint of the highest step that can be read and has the checksum that it was written with; damaged files are
  /// passed over.
  [[nodiscard]] std::optional<std::filesystem::path> latest() const;
  /// Loads latest() and gives its cursor; nothing when the folder has no checkpoint. Errors of Trainer::load(), and "checkpoint.damaged"
  /// when the folder has checkpoints and none can be read.
  std::optional<DataCursor> resume(Trainer& trainer, Where where = Where::current()) const;
  /// All of them, the lowest step first.
  [[nodiscard]] std::vector<std::filesystem::path> list() const;

 private:
  /// When a file was last looked at, which tells whether it has changed since.
  struct Stamp {
    std::filesystem::file_time_type time;
    uintmax_t size = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  /// Reads a checkpoint, unless this folder has read or written it before.
  bool isIntact(const std::filesystem::path& path);
  /// Removes what is too many beside `newest`, which may be empty.
  void prune(const std::filesystem::path& newest);

  std::filesystem::path folder_;
  size_t keep_last_;
  std::map<std::filesystem::path, Stamp> intact_;
};

}  // namespace lockstep
