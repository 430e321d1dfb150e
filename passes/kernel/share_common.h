// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// What was computed before, where it is visible, is not computed again: pure operations, places (access), lengths of arrays and loads
/// from memory that the kernel only reads, and loads from memory that it writes, between two writes.
kernel::Module shareCommon(kernel::Module module);

}  // namespace lockstep::passes
