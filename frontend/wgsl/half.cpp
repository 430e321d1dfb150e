// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/half.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::wgsl {

double roundToHalf(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| in [2^(exponent-1), 2^exponent)
  const int unit = std::max(exponent - 11, -24);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::abs(rounded) > kMaxHalf ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

uint16_t halfBits(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000u : 0u);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00u);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | 0x7C00u);
  const double magnitude = std::abs(value);
  if (magnitude < std::ldexp(1.0, -14)) return static_cast<uint16_t>(sign | static_cast<uint32_t>(std::ldexp(magnitude, 24)));
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  const auto mantissa = static_cast<uint32_t>(std::ldexp(fraction, 11)) & 0x3FFu;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 14) << 10u | mantissa);
}

double halfFromBits(uint16_t bits) {
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  const int exponent = bits >> 10u & 0x1F;
  const double mantissa = bits & 0x3FFu;
  if (exponent == 0x1F) return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024.0 + mantissa, exponent - 25);
}

}  // namespace lockstep::wgsl
