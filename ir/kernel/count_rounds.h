// SPDX-License-Identifier: Apache-2.0
// Counting the rounds of loops on a device that ends them silently after some number, in kernels that nobody proved to stay below it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/location.h"

namespace lockstep::kernel {

struct RoundLimit {
  uint32_t most = 0;   ///< rounds of all loops together, per subgroup
  uint32_t lanes = 1;  ///< of a subgroup: those whose local_invocation_index divided by it is equal
};

struct CountedRounds {
  Module module;
  uint32_t binding = 0;  ///< in group 0: one u32, which stays 0 unless some subgroup reaches the limit; then 1 + an index into `loops`
  std::vector<Location> loops;  ///< in the order of the text
};

/// The entry point with a counter per subgroup in workgroup memory. It counts as the driver does: a round that any invocation makes counts
/// once, a loop that none enters counts once each time the others pass it. The binding is the first one that is free.
CountedRounds countRounds(Module module, const RoundLimit& limit);

}  // namespace lockstep::kernel
