// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 values held in doubles.
#pragma once

#include <cstdint>

namespace lockstep::wgsl {

inline constexpr double kMaxHalf = 65504.0;

/// Nearest f16 value, ties to even; infinite when the rounded value is above kMaxHalf.
double roundToHalf(double value);
/// Bit pattern of a value that roundToHalf leaves unchanged.
uint16_t halfBits(double value);
double halfFromBits(uint16_t bits);

}  // namespace lockstep::wgsl
