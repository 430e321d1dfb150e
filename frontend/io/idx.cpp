// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <memory>
#include <string>

namespace lockstep::io {
namespace {

constexpr uint8_t kUnsignedBytes = 0x08;
constexpr uint64_t kMostBytes = uint64_t{1} << 32;

struct Closer {
  void operator()(gzFile_s* file) const { ::gzclose(file); }
};

/// Whole content, unpacked where it is packed.
Result<std::vector<uint8_t>> readUnpacked(const std::filesystem::path& path) {
  const std::unique_ptr<gzFile_s, Closer> file(::gzopen(path.c_str(), "rb"));
  if (!file || std::filesystem::is_directory(path))
    return fail("file.read", fmt::format("'{}' cannot be read", path.string()), {}, "check the path and its permissions");
  std::vector<uint8_t> content;
  std::array<uint8_t, 1 << 16> part{};
  int count = 0;
  while ((count = ::gzread(file.get(), part.data(), static_cast<unsigned>(part.size()))) > 0) {
    content.insert(content.end(), part.begin(), part.begin() + count);
    if (content.size() > kMostBytes) return fail("idx.format", "the file has more than 4 GiB", {.file = path.string()}, "split it");
  }
  int error = Z_OK;
  const char* message = ::gzerror(file.get(), &error);
  if (count < 0)
    return fail("file.read", fmt::format("'{}' cannot be unpacked: {}", path.string(), message), {},
                "the file is damaged or incomplete; download it again");
  return content;
}

}  // namespace

Result<ByteArray> readIdx(const std::filesystem::path& path) {
  LS_TRY(const std::vector<uint8_t> content, readUnpacked(path));
  const auto wrong = [&](const std::string& what) {
    return fail("idx.format", fmt::format("the file {}", what), {.file = path.string()},
                "give an IDX file of unsigned bytes, as MNIST has them; download it again if it is one");
  };
  if (content.size() < 4 || content[0] != 0 || content[1] != 0) return wrong("is not an IDX file");
  if (content[2] != kUnsignedBytes) return wrong(fmt::format("has elements of kind 0x{:02x}, not unsigned bytes", content[2]));
  const size_t rank = content[3], start = 4 + 4 * rank;
  if (content.size() < start) return wrong("ends within its header");
  ByteArray array;
  uint64_t count = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    uint32_t extent = 0;
    for (size_t i = 0; i < 4; ++i) extent = extent << 8 | content[4 + 4 * axis + i];
    count *= extent;
    if (count > kMostBytes) return wrong("has a shape of more than 4 GiB");
    array.shape.push_back(extent);
  }
  if (content.size() - start != count) return wrong(fmt::format("has {} bytes where its shape says {}", content.size() - start, count));
  array.data.assign(content.begin() + static_cast<ptrdiff_t>(start), content.end());
  return array;
}

}  // namespace lockstep::io
