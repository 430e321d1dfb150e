// SPDX-License-Identifier: Apache-2.0
// Accesses to the same bytes of which at least one writes: those that have to keep their order.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "ir/program/program.h"

namespace lockstep::passes {

struct Touch {
  program::Range range;
  size_t by = 0;  ///< the number of a job or command
};

/// Calls each(a, b) once for every two accesses that have a byte in common where one writes, by different jobs. Takes no longer than
/// sorting them, and a step for every such pair.
void forEachConflict(std::vector<Touch> touches, const std::function<void(const Touch&, const Touch&)>& each);

}  // namespace lockstep::passes
