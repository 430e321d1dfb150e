// SPDX-License-Identifier: Apache-2.0
// Floats of 16 bits, as their bits: IEEE 754 binary16 (f16) and bfloat16 (bf16), the high half of an f32.
#pragma once

#include <cstdint>

namespace lockstep {

/// The f32 that a binary16 bit pattern stands for; exact.
float halfToFloat(uint16_t bits);
/// The nearest binary16, ties to even; overflow gives infinity, a NaN stays one.
uint16_t doubleToHalf(double value);

/// The f32 that a bfloat16 bit pattern stands for; exact.
float bfloat16ToFloat(uint16_t bits);
/// The nearest bfloat16, ties to even; overflow gives infinity, a NaN stays one.
uint16_t doubleToBfloat16(double value);

}  // namespace lockstep
