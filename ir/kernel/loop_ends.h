// SPDX-License-Identifier: Apache-2.0
// Which loops surely end, found in their instructions alone.
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// True when a comparison of a local variable with an invariant leaves the loop, every round makes that comparison, and every round moves
/// the variable so that the comparison must come true: by a constant towards the numbers that leave, or by halving it. False where that is
/// not known.
bool surelyEnds(const Module& module, const Instruction& loop);

}  // namespace lockstep::kernel
