// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ir/graph/builder.h"

namespace lockstep::graph {

/// The values, for ops that run only once all valid ones of `others` are there: what they recompute takes no memory before. What a view
/// shows waits, and the view is made again: a barrier takes what is in memory, and would need a copy of a part.
std::vector<ValueId> waitFor(Builder& builder, std::span<const ValueId> values, std::span<const ValueId> others);

}  // namespace lockstep::graph
