// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/tensor_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "frontend/io/safetensors_header.h"

namespace lockstep::io {
namespace {

/// Reads rather than maps: a file that becomes shorter while it is used is an error, and not a signal.
Status readAt(const RegularFile& file, uint64_t offset, std::span<std::byte> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const std::string why = got == 0 ? "it became shorter" : std::generic_category().message(errno);
      return fail("file.read", fmt::format("'{}' cannot be read: {}", name, why), {}, "check the path and its permissions");
    }
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return Success{};
}

}  // namespace

Result<TensorReader> TensorReader::open(const std::filesystem::path& path) {
  LS_TRY(RegularFile file, openRegularFile(path));
  TensorReader reader(std::move(file), path.string());
  const uint64_t size = reader.file_.size();
  std::vector<std::byte> bytes(std::min<uint64_t>(size, kSafetensorsLengthBytes));
  LS_CHECK(readAt(reader.file_, 0, bytes, reader.name_));
  LS_TRY(const uint64_t length, safetensorsHeaderLength(bytes, size, reader.name_));
  bytes.resize(length);
  LS_CHECK(readAt(reader.file_, kSafetensorsLengthBytes, bytes, reader.name_));
  const uint64_t data = kSafetensorsLengthBytes + length;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  LS_TRY(SafetensorsHeader header, parseSafetensorsHeader(text, size - data, reader.name_));
  for (TensorEntry& entry : header.entries)
    reader.tensors_.emplace(
        std::move(entry.name),
        Place{.type = entry.type, .shape = std::move(entry.shape), .begin = data + entry.begin, .end = data + entry.end});
  return reader;
}

Result<Array> TensorReader::read(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    return fail("safetensors.tensor", fmt::format("there is no tensor '{}'", name), {.file = name_}, "use a name of tensors()");
  const Place& place = found->second;
  Array array{.type = place.type, .shape = place.shape, .data = std::vector<std::byte>(place.end - place.begin)};
  LS_CHECK(readAt(file_, place.begin, array.data, name_));
  LS_CHECK(checkTensor(array, found->first, name_));
  return array;
}

}  // namespace lockstep::io
