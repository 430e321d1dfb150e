// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/claims.h"

#include <utility>

namespace lockstep::kernel {

Module dropClaims(Module module) {
  for (Instruction& instruction : module.instructions) instruction.in_bounds = false;
  for (GlobalVariable& global : module.globals) global.zero_initialized = true;
  return module;
}

}  // namespace lockstep::kernel
