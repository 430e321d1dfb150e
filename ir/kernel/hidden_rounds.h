// SPDX-License-Identifier: Apache-2.0
// Loops that a kernel's text does not have: the writer of SPIR-V clears and moves large arrays by loops, which devices count like all
// others.
#pragma once

#include <cstdint>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// A longer array in a buffer is loaded and stored by a loop.
inline constexpr uint32_t kUnrolledElements = 32;
/// Bytes; a larger variable is cleared by a loop. Drivers split the store of a constant into one of each scalar, and compile thousands of
/// them for minutes.
inline constexpr uint32_t kStoredAtOnce = 512;

/// Rounds of the loops that become of one load, store or variable, as loopRounds() counts: n + 1 for a loop of n.
uint64_t hiddenRounds(const Module& module, const Instruction& instruction);
/// Rounds of those in front of an entry point, which clear workgroup and private memory.
uint64_t hiddenRounds(const Module& module, const Function& entry);

}  // namespace lockstep::kernel
