// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/sealed.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <utility>

namespace lockstep::io {

namespace {

class Checksum {
 public:
  void add(std::span<const std::byte> bytes) { crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()); }
  /// With its length, so that two texts are not one longer text.
  void add(std::string_view text) {
    const uint64_t length = text.size();
    add(std::as_bytes(std::span(&length, 1)));
    add(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:08x}", crc_); }

 private:
  uLong crc_ = 0;
};

std::string checksumOf(const TensorFile& file) {
  Checksum sum;
  for (const auto& [key, value] : file.metadata) {
    if (key == kChecksumEntry) continue;
    sum.add(key);
    sum.add(value);
  }
  for (const auto& [name, array] : file.tensors) {
    sum.add(name);
    sum.add(describe(array));
    sum.add(array.data);
  }
  return sum.text();
}

}  // namespace

Status writeSealed(const std::filesystem::path& path, TensorFile file) {
  file.metadata[std::string(kChecksumEntry)] = checksumOf(file);
  return writeSafetensors(path, file);
}

Result<TensorFile> readSealed(const std::filesystem::path& path) {
  LS_TRY(TensorFile file, readSafetensors(path));
  const auto entry = file.metadata.find(kChecksumEntry);
  if (entry == file.metadata.end()) return file;
  if (const std::string sum = checksumOf(file); sum != entry->second) {
    return fail("safetensors.checksum",
                fmt::format("'{}' was damaged or changed after it was written: its checksum is {}, and it should be {}", path.string(), sum,
                            entry->second),
                {.file = path.string(), .line = 0, .column = 0}, "use an older copy; tensors that you change on purpose are for upload()");
  }
  file.metadata.erase(entry);
  return file;
}

}  // namespace lockstep::io
