// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/literal.h"

namespace lockstep::wgsl {

inline constexpr double kMaxHalf = 65504.0;

/// Nearest f16 value, ties to even; infinite when that is above kMaxHalf.
inline double roundToHalf(double value) { return kernel::halfToFloat(kernel::doubleToHalf(value)); }

}  // namespace lockstep::wgsl
