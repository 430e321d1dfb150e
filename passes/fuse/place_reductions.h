// SPDX-License-Identifier: Apache-2.0
// Where reductions run: in the kernel of what they read, beside others of the same space, or in one of their own.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "passes/fuse/cluster_state.h"

namespace lockstep::passes {

/// Clusters of reductions that may take one more, by their axes, the extents of what they read and of what they make.
using OpenReductions = std::map<std::array<std::vector<int64_t>, 3>, std::deque<int32_t>>;

/// Gives a reduction its cluster. Reductions come in execution order.
void placeReduction(ClusterState& state, OpenReductions& open, graph::NodeId id);

}  // namespace lockstep::passes
