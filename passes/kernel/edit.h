// SPDX-License-Identifier: Apache-2.0
// What the kernel passes share: questions about a kernel, values that stand for others, and copies of instructions.
#pragma once

#include "ir/kernel/edit.h"
#include "ir/kernel/queries.h"

namespace lockstep::passes {

using kernel::constantBits;
using kernel::copyInstruction;
using kernel::definition;
using kernel::forEachInstruction;
using kernel::isPure;
using kernel::ValueMap;

}  // namespace lockstep::passes
