// SPDX-License-Identifier: Apache-2.0
// How the matrices of a model that only computes are kept: with fewer bits than f32, to be read by products as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/graph/type.h"
#include "ir/support/result.h"

namespace lockstep::nn {

enum class WeightKind : uint8_t { F32, F16, BF16, Int8, Int4 };

/// A value. Int8 and Int4 are whole numbers q with a scale s for a group of neighbours along the axis that a product sums over: an element
/// is q s. Int8 has an f32 scale for a whole row, max |w| / 127; Int4 a bf16 scale for each `group` elements, max |w| / 7.
struct WeightFormat {
  WeightKind kind = WeightKind::F32;
  int64_t group = 0;  ///< Int4: 32 or 128; else 0

  /// "f32", "f16", "bf16", "int8", "int4" (groups of 32), "int4:128". Code weight_format.name.
  static Result<WeightFormat> parse(std::string_view text);
  /// Whether it can be trained.
  [[nodiscard]] bool isF32() const { return kind == WeightKind::F32; }
  /// Of a whole number; 0 where elements are floats.
  [[nodiscard]] int64_t bits() const;
  /// What elements are: F32, F16 or BF16; whole numbers lie in words, U32.
  [[nodiscard]] graph::DType dtype() const;
  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};
/// As parse() takes it.
std::string toString(const WeightFormat& format);
/// All that parse() takes, in the order of their bits: for help texts.
inline constexpr const char* kWeightFormats = "f32, f16, bf16, int8, int4 or int4:128";

/// How the numbers of a quantised matrix with rows of `length` elements lie: u32 words [rows, words] and scales [rows, groups].
struct QuantizedRows {
  int64_t words = 0, groups = 0;
  int64_t group = 0;  ///< elements that share a scale
  graph::DType scale = graph::DType::F32;
};
QuantizedRows quantizedRows(const WeightFormat& format, int64_t length);

}  // namespace lockstep::nn
