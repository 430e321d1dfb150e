// SPDX-License-Identifier: Apache-2.0
// The slow oracle: runs a graph in f64 through each op's `evaluate` facet. It shares nothing with lowering, fusion or the kernels.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// Values of the leaves by name: parameters, inputs and states. A missing leaf or a wrong shape is a Failure that names it.
using LeafValues = std::map<std::string, Tensor, std::less<>>;

/// What kernels that the user wrote compute, by label: from the operands to the results (whose types are those of the node).
using KernelFunction = std::function<std::vector<std::vector<double>>(std::span<const Tensor* const> operands)>;
using KernelFunctions = std::map<std::string, KernelFunction, std::less<>>;

/// The values of all outputs, in the order of graph.outputs. A kernel without a function is a Failure that names it.
Result<std::vector<Tensor>> evaluate(const Graph& graph, const LeafValues& leaves, const KernelFunctions& kernels = {});

}  // namespace lockstep::graph
