// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Whether an update writes whole words of its state, or up to the state's end.
bool writesWholeWords(const graph::Graph& graph, const graph::Node& update);

/// Updates of packed states that begin or end within a word become one update of whole words, whose elements are chosen from the values and
/// from the old state. The state's versions become such choices, too, so that nothing waits for a half-written word.
///   %2 = update_slice %state, %1 {offset = 3}    =>    %6 = where %mask, %padded, %old    %7 = update_slice %state, %6 {offset = 2}
/// States without such updates stay as they are. Never fails.
graph::Graph updateWholeWords(const graph::Graph& graph);

}  // namespace lockstep::passes
