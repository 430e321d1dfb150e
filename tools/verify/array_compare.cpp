// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/array_compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lockstep::tools {
namespace {

constexpr uint64_t kFarthest = std::numeric_limits<uint64_t>::max();

/// Floats in their order as integers; both zeros are 0.
int64_t place(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto magnitude = static_cast<int64_t>(bits & 0x7fffffffu);
  return (bits >> 31u) != 0 ? -magnitude : magnitude;
}

bool sameBits(const io::Array& a, const io::Array& b, size_t i) {
  const size_t size = io::byteSize(a.type);
  return std::memcmp(a.data.data() + i * size, b.data.data() + i * size, size) == 0;
}

/// How far two numbers are apart in units of what is allowed; infinite where no distance is.
double apart(double got, double want, double bound) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  const double distance = std::abs(got - want);
  if (!std::isfinite(distance) || bound <= 0) return INFINITY;
  return distance / bound;
}

uint64_t ulpsOf(io::ElementType type, double got, double want) {
  if (type == io::ElementType::F32) return ulpsBetween(static_cast<float>(got), static_cast<float>(want));
  return got == want ? 0 : static_cast<uint64_t>(std::min(std::abs(got - want), 1.8e19));
}

}  // namespace

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

std::string indexText(const graph::Shape& shape, int64_t place) {
  std::vector<int64_t> index(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0;) {
    index[axis] = place % shape.extent(axis);
    place /= shape.extent(axis);
  }
  return index.empty() ? "" : fmt::format("[{}]", fmt::join(index, ", "));
}

uint64_t ulpsBetween(float a, float b) {
  if (std::isnan(a) != std::isnan(b)) return kFarthest;
  if (std::isnan(a)) return 0;
  return static_cast<uint64_t>(std::abs(place(a) - place(b)));
}

ArrayDifference compareArrays(const io::Array& got, const io::Array& want, std::span<const double> bounds) {
  ArrayDifference all{.elements = bounds.size()};
  double farthest = -1;
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double g = got.at(i), w = want.at(i), units = apart(g, w, bounds[i]);
    if (!sameBits(got, want, i) && !(std::isnan(g) && std::isnan(w))) ++all.different;
    if (units > 1) ++all.beyond;
    // Of elements without a distance the first one counts.
    if (units <= farthest) continue;
    farthest = units;
    all.worst = i;
    all.want = w;
    all.got = g;
    all.bound = bounds[i];
    all.ulps = ulpsOf(want.type, g, w);
  }
  return all;
}

std::string toText(const ArrayDifference& difference, const std::string& element) {
  const std::string ulps = difference.ulps == kFarthest ? "no number of ulp" : fmt::format("{} ulp", difference.ulps);
  return fmt::format("{} is {:.9g} instead of {:.9g} ({}, allowed {:.3g}); {} of {} elements {} bound", element, difference.got,
                     difference.want, ulps, difference.bound, difference.beyond, difference.elements,
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
