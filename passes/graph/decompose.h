// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Replaces every op whose lowering is a decomposition (softmax, layer_norm, cross_entropy, ...) by the ordinary ops that it stands for.
///   %2 = softmax %1    =>    %3 = reduce_max_number %1 ...  %9 = div %6, %8
/// Updates of packed states that share words with other elements become updates of whole words (whole_word_updates.h). Never fails.
Result<graph::Graph> decompose(const graph::Graph& graph);

/// The same once, for the nodes that `chosen` picks out of those with such a lowering.
graph::Graph decomposeIf(const graph::Graph& graph, bool (*chosen)(const graph::Node&));

}  // namespace lockstep::passes
