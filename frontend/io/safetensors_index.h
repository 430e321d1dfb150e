// SPDX-License-Identifier: Apache-2.0
// What the header of a safetensors file says; all of it is checked before any value is used.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/array.h"
#include "ir/support/result.h"

namespace lockstep::io {

constexpr size_t kSafetensorsLengthBytes = 8;
constexpr std::string_view kSafetensorsMetadata = "__metadata__";  ///< stands in the header beside the tensors

/// What the header says of a tensor.
struct TensorEntry {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< bytes of the data
};

struct SafetensorsIndex {
  std::map<std::string, TensorEntry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
  uint64_t data_begin = 0;  ///< in the file
};

/// How a file names an element type: "BF16".
std::string_view safetensorsName(ElementType type);
/// The bytes of the header, which the first eight bytes of a file say. code "safetensors.size"
Result<uint64_t> safetensorsHeaderBytes(std::span<const std::byte> start, uint64_t file_size, const std::string& name);
/// Codes: safetensors.header, .tensor, .offsets, .length, as for parseSafetensors().
Result<SafetensorsIndex> parseSafetensorsHeader(std::string_view header, uint64_t data_size, const std::string& name);
/// code "safetensors.tensor" for a BOOL that is neither 0 nor 1
Status checkSafetensorsValues(const Array& array, std::string_view tensor, const std::string& name);

}  // namespace lockstep::io
