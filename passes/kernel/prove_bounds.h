// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Marks an access in_bounds when every index is known to lie below the element count (see kernel::guardAccesses). What is not proven stays
/// guarded.
kernel::Module proveBounds(kernel::Module module);

}  // namespace lockstep::passes
