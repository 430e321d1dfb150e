// SPDX-License-Identifier: Apache-2.0
// Runs a graph once with values for its leaves: through the f64 evaluator, or compiled for a device. For tests and tools that compare
// the two; a program that runs many times wants a Trainer or a Forward.
#pragma once

#include <string>
#include <vector>

#include "ir/graph/evaluate.h"

namespace lockstep {

struct GraphRunOptions {
  std::string device = "evaluate";        ///< "evaluate", or a selector: auto, reference, vulkan, ...
  bool gradients = false;                 ///< also differentiate the graph's loss
  std::vector<std::string> wrt = {};      ///< leaves to differentiate by; empty: all parameters
  std::vector<std::string> disable = {};  ///< optional passes to leave out
  std::string dump_ir = {};
  graph::KernelFunctions kernels = {};  ///< for the evaluator, when the graph holds kernels of the user
};

/// The outputs of the graph in its order, then the gradients in the order of `wrt` (or of the parameters). Leaves are parameters and
/// inputs. On a device values pass through their element type. Throws Error.
std::vector<graph::Tensor> runGraph(const graph::Graph& graph, const graph::LeafValues& leaves, const GraphRunOptions& options = {});

}  // namespace lockstep
