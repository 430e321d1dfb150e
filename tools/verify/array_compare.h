// SPDX-License-Identifier: Apache-2.0
// Two arrays, element by element, with what each element may differ by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "frontend/io/array.h"
#include "frontend/io/jsonl.h"
#include "ir/graph/type.h"

namespace lockstep::tools {

/// Of one element.
struct ElementDifference {
  double want = 0, got = 0, bound = 0;
  double units = 0;   ///< unitsApart() of these, or of what stands for them
  uint64_t ulps = 0;  ///< f32, f16, bf16: how many floats lie between the two; integers: their distance; UINT64_MAX where only one is a NaN
  bool same = false;  ///< equal bit for bit, or both are NaNs
};

struct ArrayDifference {
  size_t elements = 0;
  size_t different = 0;  ///< not equal bit for bit; two NaNs are equal
  size_t beyond = 0;     ///< farther apart than their bound, or only one of them a NaN, or infinities that differ
  // The element that is farthest away in units of its bound. Of equal arrays the first one.
  size_t worst = 0;
  double want = 0, got = 0, bound = 0, units = 0;
  uint64_t ulps = 0;
  /// The next element; whether it is the worst one so far.
  bool add(const ElementDifference& one);
  [[nodiscard]] bool within() const { return beyond == 0; }
  [[nodiscard]] bool equal() const { return different == 0; }
};

/// `got` and `want` have the same type and number of elements, `bounds` a number for each element: how far it may be off.
ArrayDifference compareArrays(const io::Array& got, const io::Array& want, std::span<const double> bounds);

/// What an element may be off by, relative to its value or a typical one, where no bound of it is known.
inline constexpr double kUnboundedTolerance = 1e-5;

/// `relative` of each element or of the root of the mean square of all, whichever is more; 0 for integers and for what is not finite, which
/// must be equal.
std::vector<double> relativeBounds(const io::Array& want, double relative);
/// The same of f32 numbers.
std::vector<double> relativeBounds(std::span<const double> want, double relative);

/// What storing a number of that size as f16 or bf16 moves it by at most: half a unit in its last place. 0 for other types.
double storageRounding(graph::DType dtype, double magnitude);

/// How far two numbers are apart in units of what is allowed: 0 if they are equal or both NaNs, infinite where no distance is.
double unitsApart(double got, double want, double bound);

/// "[3, 5]": a place in row-major order. Empty for a scalar.
std::string indexText(const graph::Shape& shape, int64_t place);

/// How many f32 lie between two: 0 for equal ones and for zeros of different sign. UINT64_MAX if one of them is a NaN and the other not.
uint64_t ulpsBetween(float a, float b);
/// The same of the bits of two f16, and of two bf16.
uint64_t ulpsBetweenHalves(uint16_t a, uint16_t b);
uint64_t ulpsBetweenBfloat16s(uint16_t a, uint16_t b);

/// Nine digits, which tell all f32 apart, and of whole numbers up to 32 bits all.
std::string numberText(double value);
/// "9 ulp", or "no number of ulp" for UINT64_MAX.
std::string ulpsText(uint64_t ulps);
/// Half a sentence: "[17] is 2.5 instead of 2.25 (524288 ulp, allowed 2.2e-05); 3 of 64 elements are beyond their bound".
std::string toText(const ArrayDifference& difference, const std::string& element);
/// {"element", "want", "got", "ulps", "bound", "different", "beyond", "elements"}
io::Json toJson(const ArrayDifference& difference);

}  // namespace lockstep::tools
