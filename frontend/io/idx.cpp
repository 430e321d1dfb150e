// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace lockstep::io {
namespace {

constexpr uint8_t kUnsignedBytes = 0x08;
constexpr uint64_t kMostBytes = uint64_t{1} << 32;

struct Closer {
  void operator()(gzFile_s* file) const { ::gzclose(file); }
};

/// The content of a file, unpacked where it is packed, part by part: what a small file unpacks to can be as large as one likes.
class Unpacked {
 public:
  static Result<Unpacked> open(const std::filesystem::path& path) {
    std::error_code ignored;
    Unpacked file(path);
    file.file_.reset(::gzopen(path.c_str(), "rb"));
    if (file.file_ == nullptr || std::filesystem::is_directory(path, ignored))
      return fail("file.read", fmt::format("'{}' cannot be read", path.string()), {}, "check the path and its permissions");
    return file;
  }
  /// The next `size` bytes, fewer at the end of the file.
  Result<std::vector<uint8_t>> read(uint64_t size) {
    std::vector<uint8_t> content;
    for (constexpr uint64_t kPart = 1 << 20; content.size() < size;) {
      const size_t filled = content.size(), wanted = std::min(kPart, size - filled);
      content.resize(filled + wanted);
      const int count = ::gzread(file_.get(), content.data() + filled, static_cast<unsigned>(wanted));
      content.resize(filled + static_cast<size_t>(std::max(count, 0)));
      // A file that ends too early, be it by the checksum alone, has an error but no negative count.
      int error = Z_OK;
      const char* message = ::gzerror(file_.get(), &error);
      if (count < 0 || (error != Z_OK && error != Z_STREAM_END)) {
        return fail("file.read", fmt::format("'{}' cannot be unpacked: {}", path_.string(), message), {},
                    "the file is damaged or incomplete; download it again");
      }
      if (count == 0) break;
    }
    return content;
  }

 private:
  explicit Unpacked(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, Closer> file_;
};

}  // namespace

Result<ByteArray> readIdx(const std::filesystem::path& path) {
  LS_TRY(Unpacked file, Unpacked::open(path));
  const auto wrong = [&](const std::string& what) {
    return fail("idx.format", fmt::format("the file {}", what), {.file = path.string()},
                "give an IDX file of unsigned bytes, as MNIST has them; download it again if it is one");
  };
  LS_TRY(const std::vector<uint8_t> magic, file.read(4));
  if (magic.size() < 4 || magic[0] != 0 || magic[1] != 0) return wrong("is not an IDX file");
  if (magic[2] != kUnsignedBytes) return wrong(fmt::format("has elements of kind 0x{:02x}, not unsigned bytes", magic[2]));
  const size_t rank = magic[3];
  LS_TRY(const std::vector<uint8_t> extents, file.read(4 * rank));
  if (extents.size() < 4 * rank) return wrong("ends within its header");
  ByteArray array;
  uint64_t count = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    uint32_t extent = 0;
    for (size_t i = 0; i < 4; ++i) extent = extent << 8u | extents[4 * axis + i];
    count *= extent;
    if (count > kMostBytes) return wrong("has a shape of more than 4 GiB");
    array.shape.push_back(extent);
  }
  // One byte more than there should be: what a file has beyond its shape is not unpacked to be counted.
  LS_TRY(array.data, file.read(count + 1));
  if (array.data.size() > count) return wrong(fmt::format("has more bytes than the {} of its shape", count));
  if (array.data.size() < count) return wrong(fmt::format("has {} bytes where its shape says {}", array.data.size(), count));
  return array;
}

}  // namespace lockstep::io
