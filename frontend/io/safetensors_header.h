// SPDX-License-Identifier: Apache-2.0
// Private: the header of a safetensors file, which says where its tensors are.
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

inline constexpr size_t kSafetensorsLengthBytes = 8;
inline constexpr std::string_view kSafetensorsMetadata = "__metadata__";

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  ///< bytes after the header
};
struct SafetensorsHeader {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string, std::less<>> metadata;
};

/// How long the header of a file of `size` bytes is, by its first 8 bytes (or all that there are).
Result<uint64_t> safetensorsHeaderLength(std::span<const std::byte> first, uint64_t size, const std::string& name);
/// Every tensor has the bytes that its type and shape take, and they cover the `data_size` bytes after the header exactly.
Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view text, uint64_t data_size, const std::string& name);
/// Whether its bytes are values of its type.
Status checkTensor(const Array& array, const std::string& tensor, const std::string& name);
/// "BF16"
std::string_view safetensorsTypeName(ElementType type);

}  // namespace lockstep::io
