// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/npy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "frontend/io/file.h"

namespace lockstep::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

struct Descr {
  std::string_view text;  // as NumPy writes it
  ElementType type;
};
constexpr std::array<Descr, 10> kDescrs = {{
    {.text = "<f4", .type = ElementType::F32},
    {.text = "<f8", .type = ElementType::F64},
    {.text = "<i4", .type = ElementType::I32},
    {.text = "<u4", .type = ElementType::U32},
    {.text = "|b1", .type = ElementType::Bool},
    {.text = "<i8", .type = ElementType::I64},
    {.text = "<f2", .type = ElementType::F16},
    {.text = "|i1", .type = ElementType::I8},
    {.text = "|u1", .type = ElementType::U8},
    {.text = "<u2", .type = ElementType::U16},
}};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Reads the Python dictionary literal of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!accept('{')) return std::nullopt;
    while (!accept('}')) {
      const std::optional<std::string> key = string();
      if (!key || !accept(':')) return std::nullopt;
      if (*key == "descr" && !has_descr) {
        const std::optional<std::string> value = string();
        if (!value) return std::nullopt;
        header.descr = *value;
        has_descr = true;
      } else if (*key == "fortran_order" && !has_order) {
        header.fortran_order = acceptWord("True");
        if (!header.fortran_order && !acceptWord("False")) return std::nullopt;
        has_order = true;
      } else if (*key == "shape" && !has_shape) {
        if (!tuple(header.shape)) return std::nullopt;
        has_shape = true;
      } else {
        return std::nullopt;
      }
      if (!accept(',') && peek() != '}') return std::nullopt;
    }
    skipSpace();
    if (position_ != text_.size() || !has_descr || !has_order || !has_shape) return std::nullopt;
    return header;
  }

 private:
  void skipSpace() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }
  char peek() {
    skipSpace();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }
  bool acceptWord(std::string_view word) {
    skipSpace();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }
  std::optional<std::string> string() {
    const char delimiter = peek();
    if (delimiter != '\'' && delimiter != '"') return std::nullopt;
    const size_t end = text_.find(delimiter, position_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }
  bool tuple(std::vector<int64_t>& shape) {
    if (!accept('(')) return false;
    while (!accept(')')) {
      skipSpace();
      int64_t extent = 0;
      const char* begin = text_.data() + position_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) return false;
      position_ += static_cast<size_t>(end - begin);
      if (position_ < text_.size() && text_[position_] == 'L') ++position_;  // Python 2 wrote long integers so
      shape.push_back(extent);
      if (!accept(',') && peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  size_t position_ = 0;
};

Failure unknownType(const std::string& descr, const Location& where) {
  if (descr == "<V2" || descr == "|V2") {
    return fail("npy.dtype", fmt::format("element type '{}' is two bytes of anything, which is also how bfloat16 is saved", descr), where,
                "save array.astype('float32'), or bfloat16 as a safetensors file");
  }
  return fail("npy.dtype", fmt::format("element type '{}' is not supported", descr), where,
              "convert it with astype to float16, float32, float64, int8, int32, int64, uint8, uint32 or bool");
}

std::string headerText(const Array& array) {
  const Descr& descr = *std::ranges::find(kDescrs, array.type, &Descr::type);
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr.text, fmt::join(array.shape, ", "),
                     array.shape.size() == 1 ? "," : "");
}

}  // namespace

Result<Array> parseNpy(std::span<const std::byte> bytes, const std::string& name) {
  const Location where{.file = name};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto damaged = [&](const std::string& code, std::string message) {
    return fail("npy." + code, std::move(message), where, "write it again with numpy.save");
  };
  if (text.size() < 10 || !text.starts_with(kMagic)) return damaged("magic", "the file is not an npy file");
  const auto major = static_cast<uint8_t>(text[6]);
  if (major != 1 && major != 2) return damaged("magic", fmt::format("npy version {} is not supported, only 1 and 2", major));
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t start = 8 + length_bytes;
  if (text.size() < start) return damaged("length", "the file ends inside its header");
  uint32_t header_length = 0;
  std::memcpy(&header_length, bytes.data() + 8, length_bytes);
  if (header_length > text.size() - start) return damaged("length", "the file ends inside its header");
  const std::optional<Header> header = HeaderParser(text.substr(start, header_length)).parse();
  if (!header) return damaged("header", "the header is not the dictionary of descr, fortran_order and shape");

  const auto descr = std::ranges::find(kDescrs, std::string_view(header->descr), &Descr::text);
  if (descr == kDescrs.end()) return unknownType(header->descr, where);
  const std::optional<uint64_t> count = checkedElementCount(header->shape);
  if (!count) return damaged("header", fmt::format("the shape {} is impossible", header->shape));
  if (header->fortran_order && header->shape.size() > 1) {
    return fail("npy.order", "the array is in Fortran order", where, "save numpy.ascontiguousarray(array)");
  }
  const std::span<const std::byte> data = bytes.subspan(start + header_length);
  if (data.size() != *count * byteSize(descr->type)) {
    return damaged("length", fmt::format("the array {}{} needs {} bytes but the file holds {}", toString(descr->type), header->shape,
                                         *count * byteSize(descr->type), data.size()));
  }
  if (descr->type == ElementType::Bool && std::ranges::any_of(data, [](std::byte b) { return b > std::byte{1}; })) {
    return damaged("dtype", "a bool is neither 0 nor 1");
  }
  return Array{.type = descr->type, .shape = header->shape, .data = std::vector<std::byte>(data.begin(), data.end())};
}

Result<Array> readNpy(const std::filesystem::path& path) {
  LS_TRY(const std::vector<std::byte> bytes, readFile(path));
  return parseNpy(bytes, path.string());
}

Status checkNpy(const Array& array) {
  const auto count = checkedElementCount(array.shape);
  if (!count || array.data.size() != *count * byteSize(array.type)) {
    return fail("npy.length", fmt::format("an array is {} but has {} bytes", describe(array), array.data.size()), {},
                "make arrays with Array::fromFloats and its kin, or set data to as many bytes as shape and type take");
  }
  if (std::ranges::find(kDescrs, array.type, &Descr::type) == kDescrs.end()) {
    return fail("npy.dtype", fmt::format("an array is {}, which NumPy has no element type for", describe(array)), {},
                "write a safetensors file, or Array::from(ElementType::F32, array.shape, array.toDoubles())");
  }
  return Success{};
}

std::vector<std::byte> formatNpy(const Array& array) {
  (void)checkNpy(array).orThrow();
  std::string header = headerText(array);
  // Magic, version, length and the closing newline count into the alignment.
  const size_t length_bytes = header.size() + kAlignment < 65536 ? 2 : 4;
  const size_t unpadded = 8 + length_bytes + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header.push_back('\n');

  const auto length = static_cast<uint32_t>(header.size());
  std::string text(kMagic);
  text.push_back(length_bytes == 2 ? '\x01' : '\x02');
  text.push_back('\0');
  text.append(reinterpret_cast<const char*>(&length), length_bytes);
  text += header;
  std::vector<std::byte> bytes(text.size() + array.data.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  std::ranges::copy(array.data, bytes.begin() + static_cast<ptrdiff_t>(text.size()));
  return bytes;
}

Status writeNpy(const std::filesystem::path& path, const Array& array) {
  LS_CHECK(checkNpy(array));
  return writeFileAtomically(path, formatNpy(array));
}

}  // namespace lockstep::io
