// SPDX-License-Identifier: Apache-2.0
// How far the float that a device computes may be from the real number that it stands for: WGSL's accuracy of floating point operations
// (https://www.w3.org/TR/WGSL/#floating-point-accuracy), carried from operation to operation.
#pragma once

#include <array>
#include <cstdint>

#include "backends/reference/instruction.h"
#include "ir/support/ulp.h"

namespace lockstep::reference {

/// A real number, and how far from it a device's float may be: infinite where WGSL sets no bound.
struct Bounded {
  double value = 0, bound = 0;
};
using BoundedOperands = std::array<Bounded, 3>;

/// Operations that have a real result of real operands, and not a choice between numbers.
bool isContinuous(Opcode op);
/// Those of them whose result is rounded.
bool isRounded(Opcode op);
/// Comparisons, and operations that choose a whole number or a sign: the choice of the run is taken, and it is unstable where other floats
/// of the operands' ranges would choose differently.
bool isChoice(Opcode op);

/// The result of an operation in f64. `b` and `c` are ignored where it has fewer operands.
double exactly(Opcode op, double a, double b, double c);

/// What adds to the bound of a result.
struct ErrorParts {
  std::array<double, 3> operands{};  ///< by the bound of each operand alone
  double together = 0;               ///< by all of them
  double rounding = 0;               ///< of the operation itself
  double flushed = 0;                ///< when subnormal operands or results become 0
  [[nodiscard]] double total() const { return together + rounding + flushed; }
};
/// `value` is the exact result. Operations that are not continuous have no parts.
ErrorParts errorParts(Opcode op, const BoundedOperands& operands, double value);

/// Whether some numbers of the operands' ranges choose differently.
bool isUnstable(Opcode op, const BoundedOperands& operands);

}  // namespace lockstep::reference
