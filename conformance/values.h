// SPDX-License-Identifier: Apache-2.0
// Internal to conformance/: lists of cases, their typed values as bytes of a buffer, and what a result must be.
//
// In the data a value is a number, or a text: "fXXXXXXXX" and "hXXXX" are the bits of an f32 and an f16, "d" and 16 hex digits those of an
// abstract float, decimal digits an abstract integer; vectors, arrays and matrices (by columns) are lists. An expectation is one of
//   {"v": value}          equal, floats by ==
//   {"i": [low, high]}    within the closed interval; the whole line (both ends infinite) admits NaN too
//   {"any": [...]}        one of these expectations
//   {"a": [...]}          each element as its expectation says
//   {"skip": 1}           anything
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::conformance {

/// The type of a recorded value; in a buffer it lies as WGSL lays it out, a bool as u32 and an abstract number as 64 bits, low word first.
struct ValueType {
  enum class Scalar : uint8_t { Bool, I32, U32, F32, F16, AbstractInt, AbstractFloat };
  Scalar scalar = Scalar::U32;
  uint32_t rows = 1;     ///< of a vector or of a matrix's columns
  uint32_t columns = 1;  ///< more than 1: a matrix
  uint32_t length = 0;   ///< of an array; 0: no array
  bool operator==(const ValueType&) const = default;
};

/// "f32", "vec3<bool>", "mat2x4<abstract-float>", "array<vec4<f16>, 5>"; nothing for another text.
std::optional<ValueType> parseValueType(std::string_view text);

/// Elements of a list, and the bytes from one to the next. A scalar has none.
uint32_t elementCount(const ValueType& type);
ValueType elementType(const ValueType& type);
uint64_t elementStride(const ValueType& type);
uint64_t sizeOf(const ValueType& type);

struct Value {
  uint64_t bits = 0;  ///< of a scalar, as in memory
  std::vector<Value> elements{};
};

struct Expectation {
  enum class Kind : uint8_t { Equal, Within, OneOf, Elements, Anything };
  Kind kind = Kind::Anything;
  Value value{};                     ///< Equal
  double low = 0, high = 0;          ///< Within
  std::vector<Expectation> parts{};  ///< OneOf, Elements
};

struct Case {
  std::vector<Value> inputs;
  Expectation expected;
};

struct CaseList {
  std::vector<ValueType> parameters;
  ValueType result;
  std::vector<Case> cases;
};

/// {"params": [types], "ret": type, "cases": [[[inputs...], expectation], ...]}. Throws nlohmann::json::exception for another text.
CaseList parseCaseList(std::string_view text);

/// Writes a value at `to`, which has sizeOf(type) bytes.
void encode(const Value& value, const ValueType& type, std::byte* to);

/// Whether the bytes at `found` are what is expected.
bool matches(const Expectation& expected, const ValueType& type, const std::byte* found);

/// For people: "[1.5 (0x3fc00000), nan (0x7fc00000)]", "-7"; "7", "1 .. 2", "1 .. 2 or 5".
std::string describe(const ValueType& type, const std::byte* found);
std::string describe(const ValueType& type, const Expectation& expected);

}  // namespace lockstep::conformance
