// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Every call of a function without early returns becomes that function's body; arguments take the place of parameters. Functions that
/// nobody calls afterwards disappear, entry points stay. A call stays when its callee returns from inside (its meaning needs the call),
/// or when the module would grow beyond what validation and backends take.
kernel::Module inlineCalls(kernel::Module module);

}  // namespace lockstep::passes
