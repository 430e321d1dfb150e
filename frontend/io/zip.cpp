// SPDX-License-Identifier: Apache-2.0
// Form of the file: APPNOTE.TXT of PKWARE, sections 4.3.6 to 4.3.16.
#include "frontend/io/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

namespace lockstep::io {
namespace {

static_assert(std::endian::native == std::endian::little, "headers are copied as they are");

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMaxComment = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8, kVersion = 20, kFirstDate = 0x21;  // 1 January 1980
constexpr uint16_t kEncrypted = 1;
constexpr uint64_t kMaxDeflateRatio = 1040;  // of the format: 258 bytes take two bits at least
constexpr uint64_t kLimit = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMostUnpacked = uint64_t{1} << 32u;  // of all members

/// Numbers at a place that was checked to be inside.
template <class T>
T at(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void put(std::vector<std::byte>& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Nothing when the data is no deflate stream of exactly `size` bytes.
std::optional<std::vector<std::byte>> inflateTo(std::span<const std::byte> packed, size_t size) {
  std::vector<std::byte> bytes(size + 1);  // one more, so that a stream that is too long is noticed
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int end = inflate(&stream, Z_FINISH);
  const bool whole = end == Z_STREAM_END && stream.total_out == size && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) return std::nullopt;
  bytes.resize(size);
  return bytes;
}

std::vector<std::byte> deflateAll(std::span<const std::byte> data) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) internalError("deflateInit2");
  std::vector<std::byte> packed(deflateBound(&stream, static_cast<uLong>(data.size())));
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) internalError("deflate");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

/// What the directory says of a member.
struct Entry {
  std::string name;
  bool deflated = false;
  uint32_t checksum = 0;
  uint64_t local = 0, start = 0;  ///< offsets of its header and of its data
  uint64_t packed_size = 0, size = 0;
};

/// One read; carries the file's name for messages.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Result<ZipMembers> read() {
    LS_TRY(const std::vector<Entry> entries, readDirectory());
    LS_CHECK(checkSizes(entries));
    ZipMembers members;
    for (const Entry& entry : entries) {
      LS_TRY(std::vector<std::byte> data, readMember(entry));
      if (!members.emplace(entry.name, std::move(data)).second) return damaged(fmt::format("it has '{}' twice", entry.name));
    }
    return members;
  }

 private:
  [[nodiscard]] Failure damaged(const std::string& why) const {
    return fail("zip.archive", fmt::format("the file is no zip archive or a damaged one: {}", why), {.file = name_}, "write it again");
  }

  /// The end record is the last thing but for a comment.
  [[nodiscard]] std::optional<size_t> findEnd() const {
    if (bytes_.size() < kEndBytes) return std::nullopt;
    const size_t last = bytes_.size() - kEndBytes;
    const size_t first = last > kMaxComment ? last - kMaxComment : 0;
    for (size_t place = last + 1; place-- > first;) {
      if (at<uint32_t>(bytes_, place) == kEnd && place + kEndBytes + at<uint16_t>(bytes_, place + 20) == bytes_.size()) return place;
    }
    return std::nullopt;
  }

  Result<std::vector<Entry>> readDirectory() {
    const std::optional<size_t> end = findEnd();
    if (!end) return damaged("it has no directory at its end");
    const auto count = at<uint16_t>(bytes_, *end + 10);
    uint64_t place = at<uint32_t>(bytes_, *end + 16);
    if (place == kLimit || count == 0xffff) return fail("zip.method", "the archive has more than 4 GiB or 65534 members", {.file = name_});
    std::vector<Entry> entries;
    for (uint16_t i = 0; i < count; ++i) {
      if (place + kCentralBytes > *end || at<uint32_t>(bytes_, place) != kCentral) return damaged("its directory is broken");
      const uint64_t name_bytes = at<uint16_t>(bytes_, place + 28);
      const uint64_t next = place + kCentralBytes + name_bytes + at<uint16_t>(bytes_, place + 30) + at<uint16_t>(bytes_, place + 32);
      if (next > *end) return damaged("its directory is broken");
      LS_TRY(Entry entry, readEntry(place, std::string(reinterpret_cast<const char*>(bytes_.data()) + place + kCentralBytes, name_bytes)));
      entries.push_back(std::move(entry));
      place = next;
    }
    return entries;
  }

  Result<Entry> readEntry(uint64_t place, std::string member) const {
    Entry entry{.name = std::move(member),
                .deflated = false,
                .checksum = at<uint32_t>(bytes_, place + 16),
                .local = at<uint32_t>(bytes_, place + 42),
                .start = 0,
                .packed_size = at<uint32_t>(bytes_, place + 20),
                .size = at<uint32_t>(bytes_, place + 24)};
    const auto flags = at<uint16_t>(bytes_, place + 8), method = at<uint16_t>(bytes_, place + 10);
    if ((flags & kEncrypted) != 0 || (method != kStored && method != kDeflated) || entry.size == kLimit || entry.packed_size == kLimit) {
      return fail("zip.method", fmt::format("'{}' is encrypted, above 4 GiB, or compressed by method {}", entry.name, method),
                  {.file = name_}, "write it with numpy.savez or numpy.savez_compressed");
    }
    entry.deflated = method == kDeflated;
    // Sizes come from the directory: in front of the data they may be left out.
    if (entry.local + kLocalBytes > bytes_.size() || at<uint32_t>(bytes_, entry.local) != kLocal) {
      return damaged(fmt::format("'{}' is not where its directory says", entry.name));
    }
    entry.start = entry.local + kLocalBytes + at<uint16_t>(bytes_, entry.local + 26) + at<uint16_t>(bytes_, entry.local + 28);
    if (entry.start + entry.packed_size > bytes_.size()) return damaged(fmt::format("'{}' ends outside the file", entry.name));
    return entry;
  }

  /// Before anything is unpacked. Members that share bytes could make a small file as large as one likes; so could many that are packed
  /// well.
  Status checkSizes(const std::vector<Entry>& entries) const {
    uint64_t sum = 0;
    for (const Entry& entry : entries) sum += entry.size;
    if (sum > kMostUnpacked) {
      return fail("zip.size", fmt::format("the archive unpacks to {} bytes, above the limit of 4 GiB", sum), {.file = name_},
                  "write several files, or safetensors");
    }
    std::vector<const Entry*> order;
    order.reserve(entries.size());
    for (const Entry& entry : entries) order.push_back(&entry);
    std::ranges::sort(order, {}, &Entry::local);
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->start + order[i - 1]->packed_size <= order[i]->local) continue;
      return damaged(fmt::format("'{}' and '{}' overlap", order[i - 1]->name, order[i]->name));
    }
    return Success{};
  }

  Result<std::vector<std::byte>> readMember(const Entry& entry) const {
    const std::span<const std::byte> packed = bytes_.subspan(entry.start, entry.packed_size);
    std::vector<std::byte> data;
    if (!entry.deflated) {
      if (entry.size != entry.packed_size) return damaged(fmt::format("'{}' has two sizes", entry.name));
      data.assign(packed.begin(), packed.end());
    } else {
      if (entry.size > entry.packed_size * kMaxDeflateRatio) {
        return damaged(fmt::format("'{}' claims more bytes than it can hold", entry.name));
      }
      auto inflated = inflateTo(packed, entry.size);
      if (!inflated) return damaged(fmt::format("'{}' cannot be decompressed", entry.name));
      data = std::move(*inflated);
    }
    if (checksum(data) != entry.checksum) {
      return fail("zip.checksum", fmt::format("the checksum of '{}' does not match its data", entry.name), {.file = name_},
                  "write it again");
    }
    return data;
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
};

}  // namespace

Result<ZipMembers> parseZip(std::span<const std::byte> bytes, const std::string& name) { return Reader(bytes, name).read(); }

Result<std::vector<std::byte>> formatZip(const ZipMembers& members, bool deflated) {
  std::vector<std::byte> bytes, directory;
  for (const auto& [name, data] : members) {
    const std::vector<std::byte> packed = deflated ? deflateAll(data) : data;
    if (data.size() >= kLimit || bytes.size() + packed.size() + directory.size() >= kLimit || members.size() >= 0xffff ||
        name.size() > 0xffff) {
      return fail("zip.size", fmt::format("'{}' makes the archive larger than 4 GiB or 65534 members", name), {},
                  "write several files, or safetensors");
    }
    const auto offset = static_cast<uint32_t>(bytes.size());
    const auto common = [&](std::vector<std::byte>& to) {
      put<uint16_t>(to, kVersion);
      put<uint16_t>(to, 0);
      put<uint16_t>(to, deflated ? kDeflated : kStored);
      put<uint16_t>(to, 0);
      put<uint16_t>(to, kFirstDate);
      put<uint32_t>(to, checksum(data));
      put<uint32_t>(to, static_cast<uint32_t>(packed.size()));
      put<uint32_t>(to, static_cast<uint32_t>(data.size()));
      put<uint16_t>(to, static_cast<uint16_t>(name.size()));
      put<uint16_t>(to, 0);
    };
    const auto text = std::as_bytes(std::span(name.data(), name.size()));
    put<uint32_t>(bytes, kLocal);
    common(bytes);
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.insert(bytes.end(), packed.begin(), packed.end());
    put<uint32_t>(directory, kCentral);
    put<uint16_t>(directory, kVersion);
    common(directory);
    put<uint16_t>(directory, 0);
    put<uint16_t>(directory, 0);
    put<uint16_t>(directory, 0);
    put<uint32_t>(directory, 0);
    put<uint32_t>(directory, offset);
    directory.insert(directory.end(), text.begin(), text.end());
  }
  const auto start = static_cast<uint32_t>(bytes.size());
  bytes.insert(bytes.end(), directory.begin(), directory.end());
  put<uint32_t>(bytes, kEnd);
  put<uint32_t>(bytes, 0);
  put<uint16_t>(bytes, static_cast<uint16_t>(members.size()));
  put<uint16_t>(bytes, static_cast<uint16_t>(members.size()));
  put<uint32_t>(bytes, static_cast<uint32_t>(directory.size()));
  put<uint32_t>(bytes, start);
  put<uint16_t>(bytes, 0);
  return bytes;
}

}  // namespace lockstep::io
