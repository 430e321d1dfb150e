// SPDX-License-Identifier: Apache-2.0
// States whose next version is made of the one before by ops that can work in its bytes (DecomposeLowering::in_place): only some rows of
// it are written.
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::graph {

/// The versions of a state from its leaf to `next`, each made of the one before in its bytes; empty where anything else makes one of them.
std::vector<ValueId> versionsInPlace(const Graph& graph, ValueId leaf, ValueId next);

/// Whether any value is made of two of the versions, so that the older one is still needed when the newer one is there. They then need
/// memory of their own.
bool readsTogether(const Graph& graph, const std::vector<ValueId>& versions);

}  // namespace lockstep::graph
