// SPDX-License-Identifier: Apache-2.0
// safetensors files: an 8-byte little-endian header length, a JSON header {name: {dtype, shape, data_offsets}, "__metadata__": {..}},
// then the data. Reading checks everything before any value is used: nothing of a damaged file gets through.
// Read and written, each as its own element type: F64, F32, F16, BF16, I64, I32, I8, U32, U16, U8, BOOL.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "frontend/io/array.h"
#include "ir/support/result.h"

namespace lockstep::io {

/// Tensors and metadata by name; ordered, so that files and messages are the same each time.
struct TensorFile {
  std::map<std::string, Array, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;

  /// Null when there is none.
  [[nodiscard]] const Array* find(std::string_view name) const;
  friend bool operator==(const TensorFile&, const TensorFile&) = default;
};

/// Codes: safetensors.size (shorter than its header says), .header (JSON), .tensor (an entry's form, dtype or shape), .offsets (outside the
/// data, overlap or hole), .length (bytes do not match dtype and shape). `name` stands for the file in messages.
Result<TensorFile> parseSafetensors(std::span<const std::byte> bytes, const std::string& name);
Result<TensorFile> readSafetensors(const std::filesystem::path& path);

/// The bytes of a file: tensors by decreasing element size, then name, so each is aligned; the data starts at a multiple of 8.
std::vector<std::byte> formatSafetensors(const TensorFile& file);
/// Writes atomically.
Status writeSafetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace lockstep::io
