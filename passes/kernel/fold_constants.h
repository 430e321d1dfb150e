// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Integer, bool and comparison folding by WGSL's rules, exact identities (x * 1, x / 1, select of a constant, an element of what was just
/// constructed), cheaper forms of the same bits (u32 division by a power of two), and `if` on a constant whose taken arm runs to its end.
/// Float arithmetic stays as it is written.
kernel::Module foldConstants(kernel::Module module);

}  // namespace lockstep::passes
