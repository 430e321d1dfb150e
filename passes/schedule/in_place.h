// SPDX-License-Identifier: Apache-2.0
// Which results may be made in the bytes of an operand.
#pragma once

#include <set>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/program.h"

namespace lockstep::passes {

/// True when `nodes` (in order) and what they make of `values` read element i of a value only where element i of the result is made.
bool readAtOwnPosition(const graph::Graph& graph, const std::vector<graph::NodeId>& nodes, std::set<graph::ValueId> values);

/// For each buffer of a scheduled program the one whose bytes it takes over; itself when there is none. A workspace buffer is taken over
/// where its last use is a dispatch that reads it at the own position of a result of the same size and type: an invocation reads an element
/// and then writes it.
std::vector<program::BufferId> takeOver(const program::Program& program);

}  // namespace lockstep::passes
