// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include "ir/kernel/literal.h"
#include "ir/support/narrow_float.h"

namespace lockstep::wgsl {

inline constexpr double kMaxHalf = 65504.0;

/// Nearest f16 value, ties to even; infinite when `value` is above kMaxHalf by as little as f32 can tell.
inline double roundToHalf(double value) {
  if (std::abs(static_cast<float>(value)) > kMaxHalf) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return halfToFloat(doubleToHalf(value));
}

}  // namespace lockstep::wgsl
