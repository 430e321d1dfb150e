// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Drops what no effect needs: results that nobody reads, variables (function, private, workgroup) that are only stored to with their
/// stores, and `if`s, switches and loops with nothing in them, endless loops too; calls of functions that store nothing that others see.
/// Barriers, atomics and every store to storage stay. The result is canonical.
kernel::Module removeDead(kernel::Module module);

}  // namespace lockstep::passes
