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
#include <nlohmann/json.hpp>

#include "conformance/recorded_number.h"
#include "ir/kernel/literal.h"
#include "ir/support/narrow_float.h"

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

[[noreturn]] void wrongValue(std::string_view text) {
  throw json::type_error::create(302, fmt::format("'{}' is not a value of its type", text), nullptr);
}

uint64_t alignmentOf(const ValueType& type) {
  const uint64_t scalar = rowOf(type).size;
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
      return value.is_boolean() ? uint64_t{value.get<bool>()} : wholeNumber(value, "bool", 0, 1);
    case Scalar::I32:
    case Scalar::U32:
      // A conversion of a large float has no meaning in C++.
      if (!value.is_number_integer()) wrongValue("a number that is not whole");
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
  if (scalar == Scalar::F16) return halfToFloat(static_cast<uint16_t>(bits));
  return scalar == Scalar::F32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))) : std::bit_cast<double>(bits);
}

/// A scalar as a number, exact but for abstract integers, which no interval has.
double asNumber(uint64_t bits, const ValueType& type) {
  if (rowOf(type).floating) return asFloat(bits, type.scalar);
  if (type.scalar == Scalar::I32) return static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(bits)));
  return type.scalar == Scalar::AbstractInt ? static_cast<double>(static_cast<int64_t>(bits)) : static_cast<double>(bits);
}

bool equals(const Value& value, const ValueType& type, const std::byte* found) {
  if (isScalar(type)) {
    const uint64_t bits = load(type, found);
    return rowOf(type).floating ? asFloat(value.bits, type.scalar) == asFloat(bits, type.scalar) : value.bits == bits;
  }
  const ValueType element = elementType(type);
  for (uint32_t i = 0; i < elementCount(type); ++i) {
    if (!equals(value.elements[i], element, found + i * elementStride(type))) return false;
  }
  return true;
}

Value parseValue(const json& text, const ValueType& type) {
  if (isScalar(type)) return {.bits = bitsOf(text, type.scalar)};
  Value value;
  for (uint32_t i = 0; i < elementCount(type); ++i) value.elements.push_back(parseValue(text.at(i), elementType(type)));
  return value;
}

double bound(const json& value) {
  if (value.is_number()) return value.get<double>();
  const auto& text = value.get_ref<const std::string&>();
  if (text != "Infinity" && text != "-Infinity") wrongValue(text);
  return text.front() == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
}

/// `depth`: how many expectations this one is inside of. Recorded ones are at most four deep; the stack is not endless.
Expectation parseExpectation(const json& text, const ValueType& type, unsigned depth = 0) {
  using Kind = Expectation::Kind;
  constexpr unsigned kMostDepth = 16;
  if (!text.is_object() || text.size() != 1) wrongValue("an expectation that is not an object with one member");
  if (depth == kMostDepth) wrongValue("an expectation within 16 others");
  const auto kind = text.items().begin();
  const json& what = kind.value();
  if (kind.key() == "v") return {.kind = Kind::Equal, .value = parseValue(what, type)};
  if (kind.key() == "i") {
    if (!isScalar(type)) wrongValue("an interval");
    return {.kind = Kind::Within, .low = bound(what.at(0)), .high = bound(what.at(1))};
  }
  if (kind.key() == "skip") return {.kind = Kind::Anything};
  const bool elements = kind.key() == "a";
  if ((kind.key() != "any" && !elements) || !what.is_array()) wrongValue(kind.key());
  if (elements && (isScalar(type) || what.size() != elementCount(type))) wrongValue("a list of another length");
  Expectation expected{.kind = elements ? Kind::Elements : Kind::OneOf};
  for (const json& part : what) expected.parts.push_back(parseExpectation(part, elements ? elementType(type) : type, depth + 1));
  return expected;
}

ValueType parseType(const json& name) {
  const auto& text = name.get_ref<const std::string&>();
  const std::optional<ValueType> type = parseValueType(text);
  if (!type) wrongValue(text);
  return *type;
}

bool isWithin(const Expectation& interval, double number) {
  const bool whole_line = interval.low == -std::numeric_limits<double>::infinity() && interval.high == -interval.low;
  return (interval.low <= number && number <= interval.high) || (std::isnan(number) && whole_line);
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

CaseList parseCaseList(std::string_view text) {
  const json list = json::parse(text);
  CaseList made{.parameters = {}, .result = parseType(list.at("ret")), .cases = {}};
  for (const json& name : list.at("params")) made.parameters.push_back(parseType(name));
  for (const json& one : list.at("cases")) {
    Case parsed{.inputs = {}, .expected = parseExpectation(one.at(1), made.result)};
    for (size_t p = 0; p < made.parameters.size(); ++p) parsed.inputs.push_back(parseValue(one.at(0).at(p), made.parameters[p]));
    made.cases.push_back(std::move(parsed));
  }
  return made;
}

void encode(const Value& value, const ValueType& type, std::byte* to) {
  if (isScalar(type)) {
    std::memcpy(to, &value.bits, rowOf(type).size);
    return;
  }
  const ValueType element = elementType(type);
  for (uint32_t i = 0; i < elementCount(type); ++i) encode(value.elements[i], element, to + i * elementStride(type));
}

bool matches(const Expectation& expected, const ValueType& type, const std::byte* found) {
  switch (expected.kind) {
    case Expectation::Kind::Equal:
      return equals(expected.value, type, found);
    case Expectation::Kind::Within:
      return isWithin(expected, asNumber(load(type, found), type));
    case Expectation::Kind::OneOf:
      return std::ranges::any_of(expected.parts, [&](const Expectation& one) { return matches(one, type, found); });
    case Expectation::Kind::Anything:
      return true;
    case Expectation::Kind::Elements:
      break;
  }
  const ValueType element = elementType(type);
  for (uint32_t i = 0; i < elementCount(type); ++i) {
    if (!matches(expected.parts[i], element, found + i * elementStride(type))) return false;
  }
  return true;
}

std::string describe(const ValueType& type, const std::byte* found) {
  if (!isScalar(type)) {
    std::string list;
    for (uint32_t i = 0; i < elementCount(type); ++i) {
      list += (i == 0 ? "" : ", ") + describe(elementType(type), found + i * elementStride(type));
    }
    return "[" + list + "]";
  }
  const uint64_t bits = load(type, found);
  if (rowOf(type).floating) return fmt::format("{} (0x{:0{}x})", asFloat(bits, type.scalar), bits, rowOf(type).size * 2);
  if (type.scalar == Scalar::I32) return fmt::format("{}", static_cast<int32_t>(static_cast<uint32_t>(bits)));
  return type.scalar == Scalar::AbstractInt ? fmt::format("{}", static_cast<int64_t>(bits)) : fmt::format("{}", bits);
}

std::string describe(const ValueType& type, const Expectation& expected) {
  using Kind = Expectation::Kind;
  if (expected.kind == Kind::Anything) return "anything";
  if (expected.kind == Kind::Within) return fmt::format("{} .. {}", expected.low, expected.high);
  if (expected.kind == Kind::Equal) {
    std::vector<std::byte> bytes(sizeOf(type));
    encode(expected.value, type, bytes.data());
    return describe(type, bytes.data());
  }
  const bool elements = expected.kind == Kind::Elements;
  std::string list;
  for (const Expectation& part : expected.parts) {
    list += (list.empty() ? "" : elements ? ", " : " or ") + describe(elements ? elementType(type) : type, part);
  }
  return elements ? "[" + list + "]" : list;
}

}  // namespace lockstep::conformance
