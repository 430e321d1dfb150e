// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "frontend/io/file.h"
#include "frontend/io/safetensors_header.h"

namespace lockstep::io {

const Array* TensorFile::find(std::string_view name) const {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

Result<TensorFile> parseSafetensors(std::span<const std::byte> bytes, const std::string& name) {
  const auto first = bytes.first(std::min(bytes.size(), kSafetensorsLengthBytes));
  LS_TRY(const uint64_t length, safetensorsHeaderLength(first, bytes.size(), name));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kSafetensorsLengthBytes, length);
  const std::span<const std::byte> data = bytes.subspan(kSafetensorsLengthBytes + length);
  LS_TRY(SafetensorsHeader header, parseSafetensorsHeader(text, data.size(), name));
  TensorFile file{.tensors = {}, .metadata = std::move(header.metadata)};
  for (TensorEntry& entry : header.entries) {
    const auto its = data.subspan(entry.begin, entry.end - entry.begin);
    Array array{.type = entry.type, .shape = std::move(entry.shape), .data = {its.begin(), its.end()}};
    LS_CHECK(checkTensor(array, entry.name, name));
    file.tensors.emplace(std::move(entry.name), std::move(array));
  }
  return file;
}

Result<TensorFile> readSafetensors(const std::filesystem::path& path) {
  LS_TRY(const std::vector<std::byte> bytes, readFile(path));
  return parseSafetensors(bytes, path.string());
}

namespace {

using Json = nlohmann::json;

/// What a caller can have put together wrongly.
Status checkTensors(const TensorFile& file) {
  for (const auto& [name, array] : file.tensors) {
    if (name == kSafetensorsMetadata) {
      return fail("safetensors.tensor", fmt::format("a tensor is named '{}', which is the name of the metadata", name), {},
                  "give it another name");
    }
    const auto count = checkedElementCount(array.shape);
    if (count && array.data.size() == *count * byteSize(array.type)) continue;
    return fail("safetensors.length", fmt::format("tensor '{}' is {} but has {} bytes", name, describe(array), array.data.size()), {},
                "make arrays with Array::fromFloats and its kin, or set data to as many bytes as shape and type take");
  }
  return Success{};
}

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

/// "{"a":1,"b":2}" of texts that are JSON.
std::string objectOf(const std::map<std::string, std::string>& members) {
  std::string text = "{";
  for (const auto& [name, value] : members) text += (text.size() > 1 ? "," : "") + quoted(name) + ":" + value;
  return text + "}";
}

}  // namespace

std::vector<std::byte> formatSafetensors(const TensorFile& file) {
  (void)checkTensors(file).orThrow();
  std::vector<const std::pair<const std::string, Array>*> order;
  for (const auto& item : file.tensors) order.push_back(&item);
  std::ranges::stable_sort(order, std::ranges::greater{}, [](const auto* item) { return byteSize(item->second.type); });

  std::map<std::string, std::string> header, metadata;
  for (const auto& [name, value] : file.metadata) metadata.emplace(name, quoted(value));
  if (!metadata.empty()) header.emplace(kSafetensorsMetadata, objectOf(metadata));
  uint64_t offset = 0;
  for (const auto* item : order) {
    const Array& array = item->second;
    const uint64_t end = offset + array.data.size();
    header.emplace(item->first, fmt::format(R"({{"data_offsets":[{},{}],"dtype":"{}","shape":[{}]}})", offset, end,
                                            safetensorsTypeName(array.type), fmt::join(array.shape, ",")));
    offset = end;
  }
  std::string text = objectOf(header);
  text.append((8 - text.size() % 8) % 8, ' ');

  const uint64_t length = text.size();
  std::vector<std::byte> bytes(kSafetensorsLengthBytes + text.size() + offset);
  std::memcpy(bytes.data(), &length, kSafetensorsLengthBytes);
  std::memcpy(bytes.data() + kSafetensorsLengthBytes, text.data(), text.size());
  std::byte* target = bytes.data() + kSafetensorsLengthBytes + text.size();
  for (const auto* item : order) target = std::ranges::copy(item->second.data, target).out;
  return bytes;
}

Status writeSafetensors(const std::filesystem::path& path, const TensorFile& file) {
  LS_CHECK(checkTensors(file));
  return writeFileAtomically(path, formatSafetensors(file));
}

}  // namespace lockstep::io
