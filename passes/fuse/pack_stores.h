// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Results of packed types are made by maps alone, where an invocation has all elements of a word. A group of another kind makes what such
/// an element is in a register instead, and a map of its own packs it.
graph::Graph packStores(graph::Graph graph);

}  // namespace lockstep::passes
