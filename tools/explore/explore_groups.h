// SPDX-License-Identifier: Apache-2.0
// Which dispatch a group of the graph became: the passes keep no record of it, so it is found again by what both are made of.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/program.h"

namespace lockstep::tools {

/// What became of one `group` or `kernel` node of the last graph.
struct GroupPlace {
  std::vector<size_t> commands = {};            ///< of the last program, ascending; none when nothing was found
  std::vector<program::BufferId> buffers = {};  ///< of the last program, where each result lies; invalid when it was not found
};

/// One entry for each `group` and `kernel` node of the body, in its order. `grouped` is what `schedule` took, `scheduled` what it gave,
/// `last` what runs.
std::vector<GroupPlace> placeGroups(const graph::Graph& grouped, const program::Program& scheduled, const program::Program& last);

}  // namespace lockstep::tools
