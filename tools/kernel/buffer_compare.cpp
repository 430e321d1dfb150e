// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/buffer_compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tools/kernel/scalars.h"

namespace lockstep::tools {
namespace {

using kernel::Scalar;

/// Eight units in the last place of an f16, and one of the largest.
constexpr double kHalfRelative = 0x1p-7, kHalfOfLargest = 0x1p-10;

bool isFloat(Scalar scalar) { return scalar == Scalar::F32 || scalar == Scalar::F16; }

uint64_t ulpsOf(Scalar scalar, uint32_t got, uint32_t want) {
  if (scalar == Scalar::F32) return ulpsBetween(std::bit_cast<float>(got), std::bit_cast<float>(want));
  if (scalar == Scalar::F16) return ulpsBetweenHalves(static_cast<uint16_t>(got), static_cast<uint16_t>(want));
  return static_cast<uint64_t>(std::abs(numberOf(scalar, got) - numberOf(scalar, want)));
}

/// How large the floats of a member are.
struct Scale {
  double squares = 0, largest = 0;
  size_t count = 0;
  [[nodiscard]] double typical() const { return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count)); }
};

double allowed(const FloatTolerance& tolerance, Scalar scalar, const Scale& scale, double want) {
  if (!isFloat(scalar) || !std::isfinite(want)) return 0;
  const auto atLeast = [&](double relative, double least) {
    return scalar == Scalar::F16 && relative > 0 ? std::max(relative, least) : relative;
  };
  const double own = atLeast(tolerance.relative, kHalfRelative) * std::abs(want);
  const double typical = atLeast(tolerance.of_typical, kHalfRelative) * scale.typical();
  return std::max(own, typical) + atLeast(tolerance.of_largest, kHalfOfLargest) * scale.largest + tolerance.absolute;
}

}  // namespace

BufferDifference compareBuffers(const kernel::Module& module, const kernel::GlobalVariable& variable, const Bytes& got, const Bytes& want,
                                const FloatTolerance& tolerance) {
  const uint64_t end = std::min(got.size(), want.size());
  std::vector<Scale> scales;
  forEachScalar(module.types, variable.type, 0, end, [&](const ScalarPlace& place) {
    if (place.member >= scales.size()) scales.resize(place.member + 1);
    const double number = numberOf(place.scalar, bitsAt(want, place));
    if (!isFloat(place.scalar) || !std::isfinite(number)) return;
    Scale& scale = scales[place.member];
    scale.squares += number * number;
    scale.largest = std::max(scale.largest, std::abs(number));
    ++scale.count;
  });
  BufferDifference difference;
  uint64_t worst = 0;
  forEachScalar(module.types, variable.type, 0, end, [&](const ScalarPlace& place) {
    const uint32_t one = bitsAt(got, place), other = bitsAt(want, place);
    const double g = numberOf(place.scalar, one), w = numberOf(place.scalar, other);
    const double bound = allowed(tolerance, place.scalar, scales[place.member], w);
    const bool is_worst = difference.numbers.add({.want = w,
                                                  .got = g,
                                                  .bound = bound,
                                                  .units = unitsApart(g, w, bound),
                                                  .ulps = ulpsOf(place.scalar, one, other),
                                                  .same = one == other || (std::isnan(g) && std::isnan(w))});
    if (is_worst) worst = place.offset;
  });
  difference.element = scalarName(module.types, variable.type, worst);
  return difference;
}

}  // namespace lockstep::tools
