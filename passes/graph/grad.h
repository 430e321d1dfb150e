// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/builder.h"

namespace lockstep::passes {

struct GradConfig {
  /// Names of the leaves (parameters, inputs, states) to differentiate by; empty: every parameter of the graph.
  std::vector<std::string> wrt;
  bool trains = false;        ///< one leaf at least gets a gradient, else grad.C6
  bool refuses_stops = true;  ///< grad.C5, below
  /// The state by whose value the gradients are larger (loss_scale.h), and what it begins with; absent: they are as they are.
  std::optional<double> loss_scale = {};
};

/// Reverse mode. Appends the gradients of the `loss` output to the body and one `gradient` output a leaf; a leaf that the loss does not
/// depend on gets zeros. Gradients are ordinary nodes, so the pass may run on its own result.
///   %3: f32[] = sum %2 {...}      =>  %3 = ...  %4 = constant 1  %5 = broadcast_to %4 ...
///   output loss "loss" %3             output loss "loss" %3 / output gradient "w" %7
/// Fails when there is not exactly one loss (grad.C1), the loss is not a scalar f32 (grad.C2) or a name is no leaf (grad.C3).
///
/// An op that is not differentiable stops the gradient, and so does one whose result is no f32. That is ordinary where the leaf reaches the
/// loss in another way, too: a comparison that chooses the branch of a `where`, the argmax of an accuracy. It is the error grad.C5, which
/// names the op that is nearest to the loss, when a leaf gets no gradient and is stopped on at least one of its ways; or when one of its
/// ways leads through an op that has a gradient which nobody has given (a kernel): then the sum over the other ways would be wrong. Not an
/// error are zeros that are meant: a leaf that the loss does not depend on, whose ways all lead through stop_gradient or past a
/// custom_gradient that leaves it out, or through an op whose gradient is 0 (round, sign).
Result<graph::Graph> grad(const graph::Graph& graph, const GradConfig& config = {});

struct AppendedGradients {
  std::vector<graph::ValueId> values;  ///< one per value of `wrt`; invalid where nothing flows
  std::vector<graph::NodeId> stops;    ///< the op that stops it, where that is an error; else invalid
};
/// What a gradient takes from the forward computation it takes rounded where autocast made a rounded copy, so that the copy is all that is
/// kept.
///
/// What the pass is made of: appends to the body the cotangents of `wrt` that follow from those of `outputs` (f32, one each, of equal
/// shapes). What lies in front of `wrt` is not visited, nor are the nodes of the body in front of number `first`. What the gradients
/// compare (the masks of relu, of a maximum) is a constant for gradients of these gradients.
AppendedGradients appendGradients(graph::Builder& builder, std::span<const graph::ValueId> outputs,
                                  std::span<const graph::ValueId> cotangents, std::span<const graph::ValueId> wrt, size_t first = 0);
/// grad.C5: `what` ("parameter 'w' gets") no gradient, at the place of the op that stops it.
Diagnostic describeStop(const graph::Graph& graph, std::string_view what, graph::NodeId stop);

}  // namespace lockstep::passes
