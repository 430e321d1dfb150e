// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/safetensors_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <vector>

#include "ir/support/diagnostic.h"

namespace lockstep::io {
namespace {

/// Fills `target`. A file that became shorter after it was opened is an error, as one that cannot be read.
Status readAt(const RegularFile& file, uint64_t offset, std::span<std::byte> target, const std::string& name) {
  while (!target.empty()) {
    const ssize_t got = ::pread(file.descriptor(), target.data(), target.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const std::string why = got < 0 ? std::generic_category().message(errno) : "it became shorter while it was read";
      return fail("file.read", fmt::format("'{}' cannot be read: {}", name, why), {}, "check the path and its permissions");
    }
    offset += static_cast<uint64_t>(got);
    target = target.subspan(static_cast<size_t>(got));
  }
  return Success{};
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  LS_TRY(RegularFile file, openRegularFile(path));
  const std::string name = path.string();
  std::array<std::byte, kSafetensorsLengthBytes> start{};
  if (file.size() >= start.size()) LS_CHECK(readAt(file, 0, start, name));
  LS_TRY(const uint64_t header_bytes, safetensorsHeaderBytes(start, file.size(), name));
  std::string header(header_bytes, '\0');
  LS_CHECK(readAt(file, start.size(), std::as_writable_bytes(std::span(header)), name));
  LS_TRY(SafetensorsIndex index, parseSafetensorsHeader(header, file.size() - start.size() - header_bytes, name));
  return SafetensorsFile(std::move(file), std::move(index), name);
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.tensors.find(name);
  return found == index_.tensors.end() ? nullptr : &found->second;
}

Result<Array> SafetensorsFile::read(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) internalError(fmt::format("'{}' has no tensor '{}'", name_, name));
  Array array{.type = entry->type, .shape = entry->shape, .data = std::vector<std::byte>(entry->end - entry->begin)};
  LS_CHECK(readAt(file_, index_.data_begin + entry->begin, array.data, name_));
  LS_CHECK(checkSafetensorsValues(array, name, name_));
  return array;
}

}  // namespace lockstep::io
