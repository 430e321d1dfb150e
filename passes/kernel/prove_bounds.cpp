// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/prove_bounds.h"

#include "ir/kernel/guard_accesses.h"

namespace lockstep::passes {

// An index out of bounds is a mistake of the kernel: nothing is guarded here, what is proven is marked.
kernel::Module proveBounds(kernel::Module module) { return guardAccesses(std::move(module), kernel::OutOfBounds::Trap); }

}  // namespace lockstep::passes
