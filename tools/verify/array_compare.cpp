// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/array_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ir/support/narrow_float.h"

namespace lockstep::tools {
namespace {

constexpr uint64_t kFarthest = std::numeric_limits<uint64_t>::max();

/// Floats in their order as integers; both zeros are 0.
int64_t place(uint32_t bits, uint32_t sign) {
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

/// `infinity`: its bits, above which are NaNs.
uint64_t placesBetween(uint32_t a, uint32_t b, uint32_t sign, uint32_t infinity) {
  const bool a_is_nan = (a & (sign - 1)) > infinity, b_is_nan = (b & (sign - 1)) > infinity;
  if (a_is_nan || b_is_nan) return a_is_nan && b_is_nan ? 0 : kFarthest;
  return static_cast<uint64_t>(std::abs(place(a, sign) - place(b, sign)));
}

bool sameBits(const io::Array& a, const io::Array& b, size_t i) {
  const size_t size = io::byteSize(a.type);
  return std::memcmp(a.data.data() + i * size, b.data.data() + i * size, size) == 0;
}

uint64_t ulpsOf(io::ElementType type, double got, double want) {
  if (type == io::ElementType::F32) return ulpsBetween(static_cast<float>(got), static_cast<float>(want));
  if (type == io::ElementType::F16) return ulpsBetweenHalves(doubleToHalf(got), doubleToHalf(want));
  if (type == io::ElementType::BF16) return ulpsBetweenBfloat16s(doubleToBfloat16(got), doubleToBfloat16(want));
  return got == want ? 0 : static_cast<uint64_t>(std::min(std::abs(got - want), 1.8e19));
}

}  // namespace

bool ArrayDifference::add(const ElementDifference& one) {
  const size_t index = elements++;
  if (one.units > 1) ++beyond;
  if (!one.same) ++different;
  // Of elements that are equally far away the first one counts, but one that differs in its bits before one that does not.
  const bool is_worst = index == 0 || one.units > units || (one.units == units && !one.same && different == 1);
  if (!is_worst) return false;
  worst = index;
  want = one.want;
  got = one.got;
  bound = one.bound;
  units = one.units;
  ulps = one.ulps;
  return true;
}

double unitsApart(double got, double want, double bound) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  const double distance = std::abs(got - want);
  if (!std::isfinite(distance) || bound <= 0) return INFINITY;
  return distance / bound;
}

std::vector<double> relativeBounds(const io::Array& want, double relative) {
  const std::vector<double> values = want.toDoubles();
  if (want.type != io::ElementType::F32) return std::vector<double>(values.size(), 0);
  return relativeBounds(values, relative);
}

std::vector<double> relativeBounds(std::span<const double> want, double relative) {
  std::vector<double> bounds(want.size(), 0);
  double squares = 0;
  size_t finite = 0;
  for (const double value : want) {
    if (!std::isfinite(value)) continue;
    squares += value * value;
    ++finite;
  }
  const double typical = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want[i])) bounds[i] = relative * std::max(std::abs(want[i]), typical);
  }
  return bounds;
}

double storageRounding(graph::DType dtype, double magnitude) {
  if (!graph::isFloat(dtype) || !graph::isPacked(dtype) || !std::isfinite(magnitude)) return 0;
  const bool is_half = dtype == graph::DType::F16;
  const int digits = is_half ? 11 : 8, least = is_half ? -14 : -126;
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  return std::ldexp(1.0, exponent - digits);
}

std::string indexText(const graph::Shape& shape, int64_t place) {
  std::vector<int64_t> index(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0;) {
    index[axis] = place % shape.extent(axis);
    place /= shape.extent(axis);
  }
  return index.empty() ? "" : fmt::format("[{}]", fmt::join(index, ", "));
}

uint64_t ulpsBetween(float a, float b) {
  return placesBetween(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b), 0x80000000u, 0x7f800000u);
}
uint64_t ulpsBetweenHalves(uint16_t a, uint16_t b) { return placesBetween(a, b, 0x8000u, 0x7c00u); }
uint64_t ulpsBetweenBfloat16s(uint16_t a, uint16_t b) { return placesBetween(a, b, 0x8000u, 0x7f80u); }

ArrayDifference compareArrays(const io::Array& got, const io::Array& want, std::span<const double> bounds) {
  ArrayDifference all;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double g = got.at(i), w = want.at(i);
    all.add({.want = w,
             .got = g,
             .bound = bounds[i],
             .units = unitsApart(g, w, bounds[i]),
             .ulps = ulpsOf(want.type, g, w),
             .same = sameBits(got, want, i) || (std::isnan(g) && std::isnan(w))});
  }
  return all;
}

std::string numberText(double value) {
  const bool whole = std::abs(value) < 0x1p32 && value == std::trunc(value);
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.9g}", value);
}

std::string ulpsText(uint64_t ulps) { return ulps == kFarthest ? "no number of ulp" : fmt::format("{} ulp", ulps); }

std::string toText(const ArrayDifference& difference, const std::string& element) {
  return fmt::format("{} is {} instead of {} ({}, allowed {:.3g}); {} of {} elements {} bound", element, numberText(difference.got),
                     numberText(difference.want), ulpsText(difference.ulps), difference.bound, difference.beyond, difference.elements,
                     difference.beyond == 1 ? "is beyond its" : "are beyond their");
}

io::Json toJson(const ArrayDifference& difference) {
  return io::Json::object()
      .add("element", uint64_t{difference.worst})
      .add("want", difference.want)
      .add("got", difference.got)
      .add("ulps", difference.ulps == kFarthest ? io::Json() : io::Json(difference.ulps))
      .add("bound", difference.bound)
      .add("different", uint64_t{difference.different})
      .add("beyond", uint64_t{difference.beyond})
      .add("elements", uint64_t{difference.elements});
}

}  // namespace lockstep::tools
