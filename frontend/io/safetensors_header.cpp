// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace lockstep::io {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100u << 20;
constexpr size_t kMaxDepth = 4;  // {name: {shape: [..]}} is 3

/// A dtype of the format.
struct Format {
  std::string_view name;
  ElementType type;
};
constexpr std::array<Format, 11> kFormats = {{
    {.name = "F32", .type = ElementType::F32},
    {.name = "F64", .type = ElementType::F64},
    {.name = "I32", .type = ElementType::I32},
    {.name = "U32", .type = ElementType::U32},
    {.name = "BOOL", .type = ElementType::Bool},
    {.name = "I64", .type = ElementType::I64},
    {.name = "F16", .type = ElementType::F16},
    {.name = "BF16", .type = ElementType::BF16},
    {.name = "I8", .type = ElementType::I8},
    {.name = "U8", .type = ElementType::U8},
    {.name = "U16", .type = ElementType::U16},
}};
static_assert(kFormats.size() == std::size(kElementTypes));

const Format* findFormat(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? nullptr : &*found;
}

/// Finds what a parser of JSON takes and a header must not have: keys twice, of which the parser would keep the last and so hide a tensor,
/// and deep nesting.
class HeaderCheck : public nlohmann::json_sax<Json> {
 public:
  std::string problem;  ///< "has the key 'a' twice", "is not JSON: ..."; empty: none

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    return found(fmt::format("has the key '{}' twice", name));
  }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& exception) override {
    return found(fmt::format("is not JSON: {}", exception.what()));
  }

 private:
  bool found(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool open() {
    if (keys_.size() == kMaxDepth) return found("is nested too deeply");
    keys_.emplace_back();
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }
  std::vector<std::unordered_set<std::string>> keys_;  ///< of each object or array that is open
};

/// A header that goes away without asking for memory: the destructor of a value that has members does, and ends the program when there is
/// none.
class Header {
 public:
  Header() = default;
  ~Header() { takeApart(value); }
  Header(const Header&) = delete;
  Header& operator=(const Header&) = delete;
  Json value;

 private:
  /// From the leaves up; the check has limited the depth.
  static void takeApart(Json& parent) {
    for (Json& child : parent) {
      if (child.is_structured()) takeApart(child);
      child = nullptr;
    }
    if (parent.is_structured()) parent.clear();
  }
};

/// One read; carries the file's name for messages.
class HeaderReader {
 public:
  explicit HeaderReader(const std::string& name) : name_(name) {}

  Result<uint64_t> length(std::span<const std::byte> first, uint64_t size) {
    if (first.size() < kSafetensorsLengthBytes)
      return error("size", fmt::format("the file has {} bytes, fewer than the 8 of the header length", first.size()));
    uint64_t length = 0;
    std::memcpy(&length, first.data(), kSafetensorsLengthBytes);
    const uint64_t rest = size - kSafetensorsLengthBytes;
    if (length > rest) return error("size", fmt::format("the header should take {} bytes but {} are left in the file", length, rest));
    if (length > kMaxHeaderBytes)
      return error("size", fmt::format("the header of {} bytes is above the limit of {}", length, kMaxHeaderBytes));
    return length;
  }

  Result<SafetensorsHeader> read(std::string_view text, uint64_t data_size) {
    Header header;
    LS_CHECK(parseHeader(text, header.value));
    SafetensorsHeader made;
    for (const auto& [key, value] : header.value.items()) {
      if (key == kSafetensorsMetadata) {
        LS_CHECK(readMetadata(value, made));
        continue;
      }
      LS_TRY(TensorEntry entry, readEntry(key, value, data_size));
      made.entries.push_back(std::move(entry));
    }
    LS_CHECK(checkTiling(made.entries, data_size));
    return made;
  }

  Status check(const Array& array, const std::string& tensor) {
    if (array.type == ElementType::Bool && std::ranges::any_of(array.data, [](std::byte b) { return b > std::byte{1}; })) {
      return error("tensor", fmt::format("BOOL tensor '{}' has a byte that is neither 0 nor 1", tensor));
    }
    return Success{};
  }

 private:
  [[nodiscard]] Failure error(std::string_view code, const std::string& message) const {
    return fail(fmt::format("safetensors.{}", code), message, {.file = name_},
                "the file is damaged or not a safetensors file; write or download it again");
  }

  /// Two passes over the text, each in a time that grows with its length: what the structure is, then its values. A callback of the parser
  /// would do both at once, but the parser looks through all members read so far whenever one ends.
  Status parseHeader(std::string_view text, Json& header) {
    HeaderCheck check;
    const bool parsed = Json::sax_parse(text, &check);
    if (!check.problem.empty()) return error("header", "the header " + check.problem);
    header = parsed ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
    if (header.is_discarded()) return error("header", "the header is not JSON");
    if (!header.is_object()) return error("header", "the header is not a JSON object");
    return Success{};
  }

  Status readMetadata(const Json& value, SafetensorsHeader& header) {
    if (!value.is_object()) return error("header", "__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) return error("header", fmt::format("the metadata '{}' is not a string", key));
      header.metadata.emplace(key, text.get<std::string>());
    }
    return Success{};
  }

  Result<TensorEntry> readEntry(const std::string& name, const Json& value, uint64_t data_size) {
    TensorEntry entry{.name = name, .shape = {}};
    if (!value.is_object()) return error("tensor", fmt::format("the entry of tensor '{}' is not an object", name));
    for (const auto& [key, unused] : value.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return error("tensor", fmt::format("tensor '{}' has the unknown field '{}'", name, key));
      }
    }
    const auto dtype = value.find("dtype");
    if (dtype == value.end() || !dtype->is_string()) return error("tensor", fmt::format("tensor '{}' has no dtype", name));
    const Format* format = findFormat(dtype->get<std::string>());
    if (format == nullptr) {
      return fail("safetensors.tensor", fmt::format("tensor '{}' has dtype {}, which is not supported", name, dtype->get<std::string>()),
                  {.file = name_}, fmt::format("convert it to one of {}", fmt::join(supportedNames(), ", ")));
    }
    entry.type = format->type;
    const auto shape = value.find("shape");
    if (shape == value.end() || !shape->is_array()) return error("tensor", fmt::format("tensor '{}' has no shape", name));
    for (const Json& extent : *shape) {
      const std::optional<uint64_t> number = natural(extent);
      if (!number) return error("tensor", fmt::format("tensor '{}' has an extent that is not a whole number from 0 to 2^48", name));
      entry.shape.push_back(static_cast<int64_t>(*number));
    }
    const std::optional<uint64_t> count = checkedElementCount(entry.shape);
    if (!count) return error("tensor", fmt::format("tensor '{}' has the impossible shape {}", name, entry.shape));
    const auto offsets = value.find("data_offsets");
    if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 || !natural((*offsets)[0]) || !natural((*offsets)[1])) {
      return error("offsets", fmt::format("tensor '{}' has no pair of data_offsets", name));
    }
    entry.begin = *natural((*offsets)[0]);
    entry.end = *natural((*offsets)[1]);
    if (entry.begin > entry.end || entry.end > data_size) {
      return error("offsets", fmt::format("tensor '{}' takes bytes {} to {} of {}", name, entry.begin, entry.end, data_size));
    }
    const uint64_t needed = *count * byteSize(entry.type);
    if (entry.end - entry.begin != needed) {
      return error("length", fmt::format("tensor '{}' of {}{} needs {} bytes but its offsets span {}", name, format->name, entry.shape,
                                         needed, entry.end - entry.begin));
    }
    return entry;
  }

  /// The tensors must cover the data exactly: no overlap, no hole, nothing left over.
  Status checkTiling(const std::vector<TensorEntry>& entries, uint64_t data_size) {
    std::vector<const TensorEntry*> order;
    for (const TensorEntry& entry : entries) order.push_back(&entry);
    std::ranges::sort(order, {}, [](const TensorEntry* entry) { return std::tuple(entry->begin, entry->end, entry->name); });
    uint64_t covered = 0;
    for (const TensorEntry* entry : order) {
      if (entry->begin < covered) return error("offsets", fmt::format("tensor '{}' overlaps the tensor before it", entry->name));
      if (entry->begin > covered)
        return error("offsets", fmt::format("bytes {} to {} before tensor '{}' belong to no tensor", covered, entry->begin, entry->name));
      covered = entry->end;
    }
    if (covered != data_size) return error("offsets", fmt::format("the data has {} bytes but the tensors cover {}", data_size, covered));
    return Success{};
  }

  static std::optional<uint64_t> natural(const Json& value) {
    if (!value.is_number_unsigned()) return std::nullopt;
    const auto number = value.get<uint64_t>();
    if (number > (1ull << 48)) return std::nullopt;
    return number;
  }

  static std::vector<std::string_view> supportedNames() {
    std::vector<std::string_view> names;
    for (const Format& format : kFormats) names.push_back(format.name);
    return names;
  }

  const std::string& name_;
};

}  // namespace

Result<uint64_t> safetensorsHeaderLength(std::span<const std::byte> first, uint64_t size, const std::string& name) {
  return HeaderReader(name).length(first, size);
}

Result<SafetensorsHeader> parseSafetensorsHeader(std::string_view text, uint64_t data_size, const std::string& name) {
  return HeaderReader(name).read(text, data_size);
}

Status checkTensor(const Array& array, const std::string& tensor, const std::string& name) {
  return HeaderReader(name).check(array, tensor);
}

std::string_view safetensorsTypeName(ElementType type) { return std::ranges::find(kFormats, type, &Format::type)->name; }

}  // namespace lockstep::io
