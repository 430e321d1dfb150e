// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// A load of a function variable becomes the value that was stored or loaded last, wherever one value is known for every path: after the
/// store, in the blocks inside, and after `if`, `switch` and loops that do not store to the variable. Only variables
/// that are loaded and stored as a whole; their stores stay.
kernel::Module forwardStores(kernel::Module module);

}  // namespace lockstep::passes
