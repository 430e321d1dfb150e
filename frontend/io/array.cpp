// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/array.h"

#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>

namespace lockstep::io {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are copied to and from little-endian files as they are");

struct TypeRow {
  ElementType type;
  std::string_view name;
  size_t size;
};
constexpr std::array<TypeRow, 6> kTypes = {{
    {.type = ElementType::F32, .name = "f32", .size = 4},
    {.type = ElementType::F64, .name = "f64", .size = 8},
    {.type = ElementType::I32, .name = "i32", .size = 4},
    {.type = ElementType::U32, .name = "u32", .size = 4},
    {.type = ElementType::Bool, .name = "bool", .size = 1},
    {.type = ElementType::I64, .name = "i64", .size = 8},
}};
const TypeRow& rowOf(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

template <class T>
T readElement(const std::vector<std::byte>& data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
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

template <class T>
Array make(ElementType type, std::vector<int64_t> shape, std::span<const T> values, const Where& where) {
  if (const size_t count = countOf(shape, where); count != values.size()) {
    reject("array.length", fmt::format("an array of shape [{}] has {} elements but gets {}", fmt::join(shape, ","), count, values.size()),
           where, "give one value per element, row by row");
  }
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
  for (const TypeRow& row : kTypes) {
    if (row.name == text) return row.type;
  }
  return std::nullopt;
}

size_t byteSize(ElementType type) { return rowOf(type).size; }

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

Array Array::zeros(ElementType type, std::vector<int64_t> shape, Where where) {
  Array array{.type = type, .shape = std::move(shape), .data = {}};
  array.data.resize(array.elementCount(where) * byteSize(type));
  return array;
}

std::string describe(const Array& array) { return fmt::format("{}[{}]", toString(array.type), fmt::join(array.shape, ",")); }

}  // namespace lockstep::io
