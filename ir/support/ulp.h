// SPDX-License-Identifier: Apache-2.0
// Units in the last place of f32.
#pragma once

#include <cmath>
#include <limits>

namespace lockstep {

/// The smallest normal f32.
inline constexpr double kSmallestNormal = 0x1p-126;

/// The distance between neighbouring f32 at x: of subnormals and of NaN 2^-149, of infinities infinite.
inline double ulpOf(double x) {
  const double magnitude = std::abs(x);
  if (!(magnitude >= kSmallestNormal)) return 0x1p-149;
  return std::isinf(magnitude) ? std::numeric_limits<double>::infinity() : std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

}  // namespace lockstep
