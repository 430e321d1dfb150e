// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Sums by columns or rows that are read in another order (rotary positions read the other half of each head) are also computed in that
/// order, of the columns or rows in that order: whoever reads both is one kernel with the sums, and nothing waits for them. The matrix
/// comes from memory once either way, as long as it fits into the caches of a GPU.
///   %3 = sum %2 {axes = [0]}; %4 = roll %3   =>   %4 = sum (roll %2) {axes = [0]}
graph::Graph reorderSums(const graph::Graph& graph);

}  // namespace lockstep::passes
