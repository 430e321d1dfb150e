// SPDX-License-Identifier: Apache-2.0
// A dense array as files hold it: element type, shape and bytes (row-major, little-endian).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"
#include "ir/support/where.h"

namespace lockstep::io {

/// F16 is IEEE binary16, BF16 the high half of an f32. Bool is one byte of 0 or 1.
enum class ElementType : uint8_t { F32, F64, I32, U32, Bool, I64, F16, BF16, I8, U8, U16 };
inline constexpr ElementType kElementTypes[] = {ElementType::F32,  ElementType::F64, ElementType::I32, ElementType::U32,
                                                ElementType::Bool, ElementType::I64, ElementType::F16, ElementType::BF16,
                                                ElementType::I8,   ElementType::U8,  ElementType::U16};
std::string_view toString(ElementType type);  ///< "f32"
std::optional<ElementType> findElementType(std::string_view text);
size_t byteSize(ElementType type);
bool isFloat(ElementType type);

/// data.size() == elementCount() * byteSize(type).
struct Array {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  /// Error "array.shape" for a shape that checkedElementCount() refuses.
  [[nodiscard]] size_t elementCount(Where where = Where::current()) const;
  /// Element `index` in row-major order, of any type, as a double; exact, but for i64 beyond 2^53.
  [[nodiscard]] double at(size_t index) const;
  [[nodiscard]] std::vector<double> toDoubles() const;
  /// Rounded to nearest where the element type is wider.
  [[nodiscard]] std::vector<float> toFloats() const;
  [[nodiscard]] std::vector<int32_t> toInts() const;

  // Errors "array.length" unless the number of values is the product of the shape, "array.shape" for one that checkedElementCount()
  // refuses.
  static Array fromFloats(std::vector<int64_t> shape, std::span<const float> values, Where where = Where::current());
  static Array fromDoubles(std::vector<int64_t> shape, std::span<const double> values, Where where = Where::current());
  static Array fromInts(std::vector<int64_t> shape, std::span<const int32_t> values, Where where = Where::current());
  /// Of any element type. Floats are rounded to nearest, ties to even; what is too large becomes infinite. Error "array.value" for a number
  /// that an integer type does not have.
  static Array from(ElementType type, std::vector<int64_t> shape, std::span<const double> values, Where where = Where::current());
  /// Zeros.
  static Array zeros(ElementType type, std::vector<int64_t> shape, Where where = Where::current());
  friend bool operator==(const Array&, const Array&) = default;
};

/// "f32[256,64]"
std::string describe(const Array& array);

/// The product of the extents, or nothing when one is negative or the product is above 2^48.
std::optional<uint64_t> checkedElementCount(const std::vector<int64_t>& shape);

}  // namespace lockstep::io
