// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// The members of a group as a graph of their own, as choosers and emitters see it: its operands are inputs a0, a1, ..., and its results
/// outputs r0, r1, ...
graph::Graph groupBody(const graph::Graph& graph, const graph::Node& group);

}  // namespace lockstep::passes
