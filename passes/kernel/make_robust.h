// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/guard_accesses.h"
#include "ir/kernel/module.h"

namespace lockstep::passes {

/// For kernels that somebody else wrote: what has no effect is removed, loops that compute nothing among it (they may be endless), and
/// every access has a guard or is proven (see kernel::guardAccesses). Under OutOfBounds::Trap the kernel is left as it is, for debugging.
/// The module must be valid; the result is canonical, so names that are no plain letters change.
kernel::Module makeRobust(kernel::Module module, kernel::OutOfBounds policy);

}  // namespace lockstep::passes
