// SPDX-License-Identifier: Apache-2.0
// Integer operations whose results may not fit 32 bits.
#pragma once

#include "backends/reference/instruction.h"

namespace lockstep::reference {

constexpr bool mayWrap(Opcode op) {
  return op == Opcode::AddI || op == Opcode::SubI || op == Opcode::MulI || op == Opcode::Shl || op == Opcode::NegI;
}
/// The result as a number, which may have any size. mayWrap(op) only.
double withoutWrapping(Opcode op, double a, double b);

constexpr double numberOf(uint32_t bits, bool is_signed) {
  return is_signed ? static_cast<double>(static_cast<int32_t>(bits)) : static_cast<double>(bits);
}
constexpr bool fits32(double value, bool is_signed) {
  return is_signed ? value >= -2147483648.0 && value <= 2147483647.0 : value >= 0 && value <= 4294967295.0;
}
/// What Opcode::WatchInteger looks for, its operand c: results that do not fit, or operands that an operation has no value for.
constexpr uint32_t kUnsignedWrap = 0, kSignedWrap = 1, kPartial = 2;
/// A constant above stands for a negative number: x + 4294967295u is x - 1.
constexpr uint32_t kNegativeConstants = 0xffff0000u;

}  // namespace lockstep::reference
