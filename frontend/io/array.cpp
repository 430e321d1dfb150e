// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/array.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "ir/support/narrow_float.h"

namespace lockstep::io {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are copied to and from little-endian files as they are");

struct TypeRow {
  std::string_view name;
  size_t size;
  bool is_float = false;
  double lowest = 0, highest = 0;  // of integers and bool
};
// In the order of ElementType.
constexpr std::array kTypes{
    TypeRow{.name = "f32", .size = 4, .is_float = true},
    TypeRow{.name = "f64", .size = 8, .is_float = true},
    TypeRow{.name = "i32", .size = 4, .lowest = INT32_MIN, .highest = INT32_MAX},
    TypeRow{.name = "u32", .size = 4, .highest = UINT32_MAX},
    TypeRow{.name = "bool", .size = 1, .highest = 1},
    TypeRow{.name = "i64", .size = 8, .lowest = -0x1p63, .highest = 0x1.fffffffffffffp62},
    TypeRow{.name = "f16", .size = 2, .is_float = true},
    TypeRow{.name = "bf16", .size = 2, .is_float = true},
    TypeRow{.name = "i8", .size = 1, .lowest = INT8_MIN, .highest = INT8_MAX},
    TypeRow{.name = "u8", .size = 1, .highest = UINT8_MAX},
    TypeRow{.name = "u16", .size = 2, .highest = UINT16_MAX},
};
static_assert(kTypes.size() == std::size(kElementTypes));
const TypeRow& rowOf(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

template <class T>
T readElement(const std::vector<std::byte>& data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// The bits of an element, in the low ones; `value` is one of the type, or a float.
uint64_t bitsOf(ElementType type, double value) {
  if (type == ElementType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == ElementType::F64) return std::bit_cast<uint64_t>(value);
  if (type == ElementType::F16) return doubleToHalf(value);
  if (type == ElementType::BF16) return doubleToBfloat16(value);
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

/// Throws an Error at the caller's place.
[[noreturn]] void reject(std::string code, std::string message, const Where& where, std::string remedy) {
  throw Error({.code = std::move(code),
               .message = std::move(message),
               .where = {where.file_name(), where.line(), where.column()},
               .notes = {},
               .remedy = std::move(remedy)});
}

size_t countOf(const std::vector<int64_t>& shape, const Where& where) {
  const auto count = checkedElementCount(shape);
  if (count) return *count;
  reject("array.shape", fmt::format("[{}] is no shape of an array", fmt::join(shape, ",")), where,
         "extents are 0 or more, and an array has at most 2^48 elements");
}

void checkLength(const std::vector<int64_t>& shape, size_t values, const Where& where) {
  const size_t count = countOf(shape, where);
  if (count == values) return;
  reject("array.length", fmt::format("an array of shape [{}] has {} elements but gets {}", fmt::join(shape, ","), count, values), where,
         "give one value per element, row by row");
}

template <class T>
Array make(ElementType type, std::vector<int64_t> shape, std::span<const T> values, const Where& where) {
  checkLength(shape, values.size(), where);
  Array array{.type = type, .shape = std::move(shape), .data = {}};
  const auto bytes = std::as_bytes(values);
  array.data.assign(bytes.begin(), bytes.end());
  return array;
}

template <class T>
std::vector<T> convert(const Array& array) {
  std::vector<T> values(array.elementCount());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(array.at(i));
  return values;
}

}  // namespace

std::string_view toString(ElementType type) { return rowOf(type).name; }

std::optional<ElementType> findElementType(std::string_view text) {
  const auto* found = std::ranges::find(kTypes, text, &TypeRow::name);
  return found == kTypes.end() ? std::nullopt : std::optional(kElementTypes[found - kTypes.begin()]);
}

size_t byteSize(ElementType type) { return rowOf(type).size; }
bool isFloat(ElementType type) { return rowOf(type).is_float; }

std::optional<uint64_t> checkedElementCount(const std::vector<int64_t>& shape) {
  constexpr uint64_t kLimit = 1ull << 48;
  uint64_t count = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0 || static_cast<uint64_t>(extent) > kLimit) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (count > kLimit / static_cast<uint64_t>(extent)) return std::nullopt;
    count *= static_cast<uint64_t>(extent);
  }
  return empty ? 0 : count;
}

size_t Array::elementCount(Where where) const { return countOf(shape, where); }

double Array::at(size_t index) const {
  switch (type) {
    case ElementType::F32:
      return readElement<float>(data, index);
    case ElementType::F64:
      return readElement<double>(data, index);
    case ElementType::I32:
      return readElement<int32_t>(data, index);
    case ElementType::U32:
      return readElement<uint32_t>(data, index);
    case ElementType::Bool:
      return readElement<uint8_t>(data, index);
    case ElementType::I64:
      return static_cast<double>(readElement<int64_t>(data, index));
    case ElementType::F16:
      return static_cast<double>(halfToFloat(readElement<uint16_t>(data, index)));
    case ElementType::BF16:
      return static_cast<double>(bfloat16ToFloat(readElement<uint16_t>(data, index)));
    case ElementType::I8:
      return readElement<int8_t>(data, index);
    case ElementType::U8:
      return readElement<uint8_t>(data, index);
    case ElementType::U16:
      return readElement<uint16_t>(data, index);
  }
  internalError("io::Array with an unknown element type");
}

std::vector<double> Array::toDoubles() const { return convert<double>(*this); }
std::vector<float> Array::toFloats() const { return convert<float>(*this); }
std::vector<int32_t> Array::toInts() const { return convert<int32_t>(*this); }

Array Array::fromFloats(std::vector<int64_t> shape, std::span<const float> values, Where where) {
  return make(ElementType::F32, std::move(shape), values, where);
}
Array Array::fromDoubles(std::vector<int64_t> shape, std::span<const double> values, Where where) {
  return make(ElementType::F64, std::move(shape), values, where);
}
Array Array::fromInts(std::vector<int64_t> shape, std::span<const int32_t> values, Where where) {
  return make(ElementType::I32, std::move(shape), values, where);
}

Array Array::from(ElementType type, std::vector<int64_t> shape, std::span<const double> values, Where where) {
  checkLength(shape, values.size(), where);
  const TypeRow& row = rowOf(type);
  Array array{.type = type, .shape = std::move(shape), .data = std::vector<std::byte>(values.size() * row.size)};
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!row.is_float && !(value >= row.lowest && value <= row.highest && value == std::trunc(value))) {
      reject("array.value", fmt::format("element {} is {}, which {} cannot hold", i, value, row.name), where,
             fmt::format("give whole numbers from {:.0f} to {:.0f}, or take a float type", row.lowest, row.highest));
    }
    const uint64_t bits = bitsOf(type, value);
    std::memcpy(array.data.data() + i * row.size, &bits, row.size);
  }
  return array;
}

Array Array::zeros(ElementType type, std::vector<int64_t> shape, Where where) {
  Array array{.type = type, .shape = std::move(shape), .data = {}};
  array.data.resize(array.elementCount(where) * byteSize(type));
  return array;
}

std::string describe(const Array& array) { return fmt::format("{}[{}]", toString(array.type), fmt::join(array.shape, ",")); }

}  // namespace lockstep::io
