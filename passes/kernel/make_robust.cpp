// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/make_robust.h"

#include "passes/kernel/remove_dead.h"

namespace lockstep::passes {

kernel::Module makeRobust(kernel::Module module, kernel::OutOfBounds policy) {
  if (policy == kernel::OutOfBounds::Trap) return module;
  return guardAccesses(removeDead(std::move(module)), policy);
}

}  // namespace lockstep::passes
