// SPDX-License-Identifier: Apache-2.0
// A safetensors file that is read tensor by tensor.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/io/array.h"
#include "frontend/io/regular_file.h"
#include "frontend/io/safetensors_index.h"
#include "ir/support/result.h"

namespace lockstep::io {

/// A file of which only what is asked for is read: the weights of a large model, tensor by tensor. It is read and not mapped into memory,
/// because a mapped file that somebody makes shorter ends the process.
class SafetensorsFile {
 public:
  /// A regular file. Reads and checks its header. Codes of parseSafetensors(), and file.read.
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  [[nodiscard]] const std::map<std::string, TensorEntry, std::less<>>& tensors() const { return index_.tensors; }
  /// Null when there is none.
  [[nodiscard]] const TensorEntry* find(std::string_view name) const;
  /// A tensor that is there. Codes: file.read, safetensors.tensor.
  [[nodiscard]] Result<Array> read(std::string_view name) const;

 private:
  SafetensorsFile(RegularFile file, SafetensorsIndex index, std::string name)
      : file_(std::move(file)), index_(std::move(index)), name_(std::move(name)) {}
  RegularFile file_;
  SafetensorsIndex index_;
  std::string name_;
};

}  // namespace lockstep::io
