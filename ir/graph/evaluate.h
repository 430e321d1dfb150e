// SPDX-License-Identifier: Apache-2.0
// The slow oracle: runs a graph in f64 through each op's `evaluate` facet. It shares nothing with lowering, fusion or the kernels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// Values of the leaves by name: parameters, inputs and states. A missing leaf or a wrong shape is a Failure that names it.
using LeafValues = std::map<std::string, Tensor, std::less<>>;

/// The values of all outputs, in the order of graph.outputs.
Result<std::vector<Tensor>> evaluate(const Graph& graph, const LeafValues& leaves);

}  // namespace lockstep::graph
