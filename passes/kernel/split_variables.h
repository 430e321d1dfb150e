// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// An array or struct in function memory of which only single elements by constant index are ever used becomes one variable per element.
/// Arrays of arrays come apart level by level; at most kSplitElements elements per level.
kernel::Module splitVariables(kernel::Module module);

inline constexpr uint32_t kSplitElements = 64;

}  // namespace lockstep::passes
