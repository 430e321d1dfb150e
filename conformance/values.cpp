// SPDX-License-Identifier: Apache-2.0
#include "conformance/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/kernel/literal.h"

namespace lockstep::conformance {
namespace {

using nlohmann::json;
using Scalar = ValueType::Scalar;

struct ScalarRow {
  std::string_view name;
  Scalar scalar;
  uint32_t size;
  bool floating;
};
// In the order of Scalar.
constexpr std::array<ScalarRow, 7> kScalars{{{"bool", Scalar::Bool, 4, false},
                                             {"i32", Scalar::I32, 4, false},
                                             {"u32", Scalar::U32, 4, false},
                                             {"f32", Scalar::F32, 4, true},
                                             {"f16", Scalar::F16, 2, true},
                                             {"abstract-int", Scalar::AbstractInt, 8, false},
                                             {"abstract-float", Scalar::AbstractFloat, 8, true}}};

const ScalarRow& rowOf(const ValueType& type) { return kScalars[static_cast<size_t>(type.scalar)]; }
bool isScalar(const ValueType& type) { return type.length == 0 && type.columns == 1 && type.rows == 1; }
bool isAbstract(const ValueType& type) { return type.scalar == Scalar::AbstractInt || type.scalar == Scalar::AbstractFloat; }

[[noreturn]] void wrongValue(std::string_view text) {
  throw json::type_error::create(302, fmt::format("'{}' is not a value of its type", text), nullptr);
}

uint64_t alignmentOf(const ValueType& type) {
  const uint64_t scalar = rowOf(type).size;
  if (isAbstract(type)) return 4;
  return type.rows == 1 ? scalar : scalar * (type.rows == 2 ? 2 : 4);
}

std::optional<uint32_t> parseCount(std::string_view text, uint32_t low, uint32_t high) {
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool good = error == std::errc() && end == text.data() + text.size() && count >= low && count <= high;
  return good ? std::optional(count) : std::nullopt;
}

std::optional<Scalar> parseScalar(std::string_view text) {
  const auto* row = std::ranges::find(kScalars, text, &ScalarRow::name);
  return row == kScalars.end() ? std::nullopt : std::optional(row->scalar);
}

uint64_t parseHex(std::string_view text, size_t digits) {
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != digits) wrongValue(text);
  return bits;
}

/// The bits of a scalar in memory.
uint64_t bitsOf(const json& value, Scalar scalar) {
  switch (scalar) {
    case Scalar::Bool:
      return value.is_boolean() ? uint64_t{value.get<bool>()} : value.get<uint64_t>();
    case Scalar::I32:
    case Scalar::U32:
      return static_cast<uint32_t>(value.get<int64_t>());
    case Scalar::AbstractInt: {
      const auto& text = value.get_ref<const std::string&>();
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size()) wrongValue(text);
      return static_cast<uint64_t>(number);
    }
    case Scalar::F32:
    case Scalar::F16:
    case Scalar::AbstractFloat: {
      const char letter = scalar == Scalar::F32 ? 'f' : scalar == Scalar::F16 ? 'h' : 'd';
      const std::string_view text = value.get_ref<const std::string&>();
      if (!text.starts_with(letter)) wrongValue(text);
      return parseHex(text.substr(1), kScalars[static_cast<size_t>(scalar)].size * 2);
    }
  }
  return 0;
}

uint64_t load(const ValueType& type, const std::byte* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, rowOf(type).size);
  return bits;
}

double asFloat(uint64_t bits, Scalar scalar) {
  if (scalar == Scalar::F16) return kernel::halfToFloat(static_cast<uint16_t>(bits));
  return scalar == Scalar::F32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))) : std::bit_cast<double>(bits);
}

/// A scalar as a number, exact but for abstract integers, which no interval has.
double asNumber(uint64_t bits, const ValueType& type) {
  if (rowOf(type).floating) return asFloat(bits, type.scalar);
  if (type.scalar == Scalar::I32) return static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(bits)));
  return type.scalar == Scalar::AbstractInt ? static_cast<double>(static_cast<int64_t>(bits)) : static_cast<double>(bits);
}

bool equals(const json& value, const ValueType& type, const std::byte* found) {
  if (isScalar(type)) {
    const uint64_t wanted = bitsOf(value, type.scalar), bits = load(type, found);
    return rowOf(type).floating ? asFloat(wanted, type.scalar) == asFloat(bits, type.scalar) : wanted == bits;
  }
  const ValueType element = elementType(type);
  for (uint32_t i = 0; i < elementCount(type); ++i) {
    if (!equals(value.at(i), element, found + i * elementStride(type))) return false;
  }
  return true;
}

double bound(const json& value) {
  if (value.is_number()) return value.get<double>();
  const auto& text = value.get_ref<const std::string&>();
  if (text != "Infinity" && text != "-Infinity") wrongValue(text);
  return text.front() == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

bool isWithin(const json& interval, double number) {
  const double low = bound(interval.at(0)), high = bound(interval.at(1));
  return (low <= number && number <= high) || (std::isnan(number) && std::isinf(low) && low < 0 && std::isinf(high) && high > 0);
}

}  // namespace

std::optional<ValueType> parseValueType(std::string_view text) {
  if (const std::optional<Scalar> scalar = parseScalar(text)) return ValueType{.scalar = *scalar};
  const size_t open = text.find('<');
  if (open == std::string_view::npos || !text.ends_with('>')) return std::nullopt;
  const std::string_view head = text.substr(0, open), inside = text.substr(open + 1, text.size() - open - 2);
  if (head == "array") {
    const size_t comma = inside.rfind(", ");
    if (comma == std::string_view::npos) return std::nullopt;
    std::optional<ValueType> element = parseValueType(inside.substr(0, comma));
    const std::optional<uint32_t> length = parseCount(inside.substr(comma + 2), 1, 1u << 16u);
    if (!element || element->length != 0 || !length) return std::nullopt;
    element->length = *length;
    return element;
  }
  const std::optional<Scalar> scalar = parseScalar(inside);
  const bool vector = head.starts_with("vec") && head.size() == 4, matrix = head.starts_with("mat") && head.size() == 6 && head[4] == 'x';
  if (!scalar || (!vector && !matrix)) return std::nullopt;
  const std::optional<uint32_t> rows = parseCount(head.substr(matrix ? 5 : 3, 1), 2, 4);
  const std::optional<uint32_t> columns = matrix ? parseCount(head.substr(3, 1), 2, 4) : 1;
  if (!rows || !columns) return std::nullopt;
  return ValueType{.scalar = *scalar, .rows = *rows, .columns = *columns};
}

uint32_t elementCount(const ValueType& type) {
  return type.length > 0 ? type.length : type.columns > 1 ? type.columns : type.rows > 1 ? type.rows : 0;
}

ValueType elementType(const ValueType& type) {
  ValueType element = type;
  (type.length > 0 ? element.length : type.columns > 1 ? element.columns : element.rows) = type.length > 0 ? 0 : 1;
  return element;
}

uint64_t elementStride(const ValueType& type) {
  const ValueType element = elementType(type);
  const uint64_t alignment = alignmentOf(element);
  return (sizeOf(element) + alignment - 1) / alignment * alignment;
}

uint64_t sizeOf(const ValueType& type) {
  if (isScalar(type)) return rowOf(type).size;
  return elementCount(type) * elementStride(type);
}

void encode(const json& value, const ValueType& type, std::byte* to) {
  if (isScalar(type)) {
    const uint64_t bits = bitsOf(value, type.scalar);
    std::memcpy(to, &bits, rowOf(type).size);
    return;
  }
  const ValueType element = elementType(type);
  for (uint32_t i = 0; i < elementCount(type); ++i) encode(value.at(i), element, to + i * elementStride(type));
}

bool matches(const json& expected, const ValueType& type, const std::byte* found) {
  const auto kind = expected.items().begin();
  const json& what = kind.value();
  if (kind.key() == "v") return equals(what, type, found);
  if (kind.key() == "i") return isWithin(what, asNumber(load(type, found), type));
  if (kind.key() == "skip") return true;
  if (kind.key() == "any") return std::ranges::any_of(what, [&](const json& one) { return matches(one, type, found); });
  if (kind.key() != "a") wrongValue(expected.dump());
  const ValueType element = elementType(type);
  for (uint32_t i = 0; i < elementCount(type); ++i) {
    if (!matches(what.at(i), element, found + i * elementStride(type))) return false;
  }
  return true;
}

std::string describeValue(const ValueType& type, const std::byte* found) {
  if (!isScalar(type)) {
    std::string list;
    for (uint32_t i = 0; i < elementCount(type); ++i) {
      list += (i == 0 ? "" : ", ") + describeValue(elementType(type), found + i * elementStride(type));
    }
    return "[" + list + "]";
  }
  const uint64_t bits = load(type, found);
  if (rowOf(type).floating) return fmt::format("{} (0x{:0{}x})", asFloat(bits, type.scalar), bits, rowOf(type).size * 2);
  if (type.scalar == Scalar::I32) return fmt::format("{}", static_cast<int32_t>(static_cast<uint32_t>(bits)));
  return type.scalar == Scalar::AbstractInt ? fmt::format("{}", static_cast<int64_t>(bits)) : fmt::format("{}", bits);
}

}  // namespace lockstep::conformance
