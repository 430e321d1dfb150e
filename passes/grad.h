// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph/builder.h"

namespace lockstep::passes {

struct GradConfig {
  /// Names of the leaves (parameters, inputs, states) to differentiate by; empty: every parameter of the graph.
  std::vector<std::string> wrt;
};

/// Reverse mode. Appends the gradients of the `loss` output to the body and one `gradient` output a leaf; a leaf that the loss does not
/// depend on gets zeros. Gradients are ordinary nodes, so the pass may run on its own result.
///   %3: f32[] = sum %2 {...}      =>  %3 = ...  %4 = constant 1  %5 = broadcast_to %4 ...
///   output loss "loss" %3             output loss "loss" %3 / output gradient "w" %7
/// Fails when there is not exactly one loss (grad.C1), the loss is not a scalar f32 (grad.C2) or a name is no leaf (grad.C3). An op whose
/// facet says that it is not differentiable stops the gradient.
Result<graph::Graph> grad(const graph::Graph& graph, const GradConfig& config = {});

/// What the pass is made of: appends to the body the cotangents of `wrt` that follow from those of `outputs` (f32, one each, of equal
/// shapes). Invalid where nothing flows. What lies in front of `wrt` is not visited.
std::vector<graph::ValueId> appendGradients(graph::Builder& builder, std::span<const graph::ValueId> outputs,
                                            std::span<const graph::ValueId> cotangents, std::span<const graph::ValueId> wrt);

}  // namespace lockstep::passes
