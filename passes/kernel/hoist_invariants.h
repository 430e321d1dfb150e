// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Pure operations that stand in a loop, not below an `if` in it, and whose operands come from outside move in front of the loop, in their
/// order. WGSL's arithmetic is total, so computing one that the loop would not have reached is safe. Loads and places stay.
kernel::Module hoistInvariants(kernel::Module module);

}  // namespace lockstep::passes
