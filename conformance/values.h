// SPDX-License-Identifier: Apache-2.0
// Internal to conformance/: typed values of the recorded data as bytes of a buffer, and what a result must be.
//
// A value is a number, or a text: "fXXXXXXXX" and "hXXXX" are the bits of an f32 and an f16, "d" and 16 hex digits those of an abstract
// float, decimal digits an abstract integer; vectors, arrays and matrices (by columns) are lists. An expectation is one of
//   {"v": value}          equal, floats by ==
//   {"i": [low, high]}    within the closed interval; the whole line (both ends infinite) admits NaN too
//   {"any": [...]}        one of these expectations
//   {"a": [...]}          each element as its expectation says
//   {"skip": 1}           anything
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::conformance {

/// The type of a recorded value; in a buffer it lies as WGSL lays it out, a bool as u32 and an abstract number as its low and high word.
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

/// Writes a value at `to`, which has sizeOf(type) bytes. Throws nlohmann::json::exception when the value is not of the type.
void encode(const nlohmann::json& value, const ValueType& type, std::byte* to);

/// Whether the bytes at `found` are what is expected. Throws nlohmann::json::exception for what is no expectation.
bool matches(const nlohmann::json& expected, const ValueType& type, const std::byte* found);

/// The value for people: "[1.5, nan]"; floats with their bits.
std::string describeValue(const ValueType& type, const std::byte* found);

}  // namespace lockstep::conformance
