// SPDX-License-Identifier: Apache-2.0
// Judges an array of a device, element by element, by what WGSL's accuracy of all operations that made the element adds up to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/graph/type.h"
#include "tools/verify/array_compare.h"

namespace lockstep::tools {

struct ElementLimits {
  /// What the device's program, in exact arithmetic, may be off by: so much of the element and so much of the largest one, since near zero
  /// the error of a polynomial is one of the largest. Constants and inputs that f32 rounds count here, too.
  double program = 1e-6;
  /// relativeBounds() of an element without a known bound.
  double unbounded = kUnboundedTolerance;
};

/// What decides about an element.
enum class Judge : uint8_t {
  Equality,   ///< of integers, infinities and NaNs, and of floats that are equal and have no known bound
  Bound,      ///< the device: its distance from exact arithmetic
  Program,    ///< exact arithmetic: its distance from what is expected
  Tolerance,  ///< of floats that are not equal and have no known bound, or an infinite one
};

struct ElementCheck {
  /// Its worst element is the one that takes up most of what it is allowed; `bound` and `units` are those of `judge`. `different`: not
  /// `want` rounded to f32.
  ArrayDifference numbers;
  Judge judge = Judge::Equality;
  double exact = 0;      ///< that element in exact arithmetic; NaN where it is not known
  size_t unbounded = 0;  ///< elements that a tolerance decided about
  size_t first_unbounded = 0;
  [[nodiscard]] bool within() const { return numbers.within(); }
};

/// `got`, `want` and what boundGraph() or GraphRunner::bounds() knows of them, which may be nothing; all of one size. With bounds both must
/// hold: `got` is within its bound of exact arithmetic, and that within `limits.program` of `want`.
ElementCheck checkElements(std::span<const double> got, std::span<const double> want, graph::DType dtype, const RoundingBounds& bounds,
                           const ElementLimits& limits);

/// Half a sentence about the worst element, as that of an ArrayDifference: "y[17] is 2.5 instead of 2.25 (524288 ulp, allowed 2.2e-07);
/// ...". It says so where not the device is wrong but its program, or where a tolerance stands for the bound.
std::string toText(const ElementCheck& check, const std::string& element);
/// That of its ArrayDifference, and {"exact", "ratio", "judge"}.
io::Json toJson(const ElementCheck& check);

}  // namespace lockstep::tools
