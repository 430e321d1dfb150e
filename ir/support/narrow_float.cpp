// SPDX-License-Identifier: Apache-2.0
#include "ir/support/narrow_float.h"

#include <bit>
#include <cmath>

namespace lockstep {
namespace {

/// Fields of a format with a sign, 5 or 8 bits of exponent and `fraction` bits of fraction.
struct Format {
  int fraction;
  int smallest;     ///< exponent of the smallest normal number
  double overflow;  ///< half way between the largest finite number and the next power of two
  uint32_t infinity;
};
constexpr Format kHalf{.fraction = 10, .smallest = -14, .overflow = 65520.0, .infinity = 0x7c00};
constexpr Format kBfloat16{.fraction = 7, .smallest = -126, .overflow = 0x1.ffp127, .infinity = 0x7f80};

uint16_t narrow(double value, const Format& format) {
  const uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double magnitude = std::fabs(value);
  uint32_t bits = 0;
  if (std::isnan(value)) {
    bits = format.infinity | 1u << (format.fraction - 1);
  } else if (magnitude >= format.overflow) {
    bits = format.infinity;
  } else if (magnitude < std::ldexp(1.0, format.smallest)) {
    bits = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, format.fraction - format.smallest)));
  } else {
    int exponent = 0;
    const double fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
    const auto significand = static_cast<uint32_t>(std::nearbyint(std::ldexp(fraction, format.fraction + 1)));
    // A significand that rounds up to a power of two carries into the exponent, as it should.
    bits = (static_cast<uint32_t>(exponent - format.smallest) << format.fraction) + (significand - (1u << format.fraction));
  }
  return static_cast<uint16_t>(sign | bits);
}

}  // namespace

float halfToFloat(uint16_t bits) {
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) {
    const uint32_t wide = (uint32_t{bits} & 0x8000u) << 16 | 0x7f800000u | static_cast<uint32_t>(fraction) << 13;
    return std::bit_cast<float>(wide);
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

uint16_t doubleToHalf(double value) { return narrow(value, kHalf); }

float bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t doubleToBfloat16(double value) { return narrow(value, kBfloat16); }

}  // namespace lockstep
