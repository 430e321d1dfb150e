// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/support/result.h"

namespace lockstep::passes {

/// For GPUs, sums of slices by segment (the gradient of an embedding): where every segment would look through a long index, the index is
/// sorted once, and each segment finds its slices beside each other. They are added in the same order as before.
///   %y = segment_sum %x, %idx   =>   %k, %o = sort %idx; %s = search_sorted %k, 0...n; %y = sum_of_runs %x, %o, %s
/// Never fails.
Result<graph::Graph> sortSegments(const graph::Graph& graph);

}  // namespace lockstep::passes
