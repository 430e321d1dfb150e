// SPDX-License-Identifier: Apache-2.0
// A safetensors file whose tensors are read one by one, so that memory holds those that are used and no others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/array.h"
#include "frontend/io/regular_file.h"
#include "ir/support/result.h"

namespace lockstep::io {

/// It reads and does not map the file: a mapped file that somebody makes shorter ends the process.
class TensorReader {
 public:
  struct Place {
    ElementType type = ElementType::F32;
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0;  ///< bytes of the file
  };

  /// Reads the header, and checks all that readSafetensors() checks of it. Codes as of that.
  static Result<TensorReader> open(const std::filesystem::path& path);

  [[nodiscard]] const std::map<std::string, Place, std::less<>>& tensors() const { return tensors_; }
  /// One of them. Codes file.read, also where the file became shorter, and safetensors.tensor.
  [[nodiscard]] Result<Array> read(std::string_view name) const;

 private:
  TensorReader(RegularFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}
  RegularFile file_;
  std::string name_;
  std::map<std::string, Place, std::less<>> tensors_;
};

}  // namespace lockstep::io
