// SPDX-License-Identifier: Apache-2.0
// Whether an operand has a say in a result: 0 * x is 0 whatever x is.
#pragma once

#include <array>
#include <cstdint>

#include "backends/reference/instruction.h"

namespace lockstep::reference {

/// The operands of one lane, and which of them are doubtful: 0 is for those that are not.
struct DoubtfulOperands {
  std::array<uint32_t, 3> bits{};
  std::array<uint8_t, 3> doubt{};
};

/// The doubt of a result: that of an operand, or 0 where the doubtful ones have no say in it. What a comparison decides is never in doubt:
/// a maximum that is found by `if` is as good as that of max().
uint8_t doubtOf(Opcode op, const DoubtfulOperands& operands, uint32_t result);

}  // namespace lockstep::reference
