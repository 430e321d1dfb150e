// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/graph/optimizer_config.h"

namespace lockstep::passes {

/// Turns a graph with gradient outputs into a training step: parameters become views of the leaf `params`, gradients are packed and, in
/// this order, averaged over runs, normalised, clipped and applied by one flat expression; the next versions of the states become outputs.
/// With checks of indices the loss is infinite where one has failed, so that the step counts as one that is not finite.
/// Gradient outputs disappear. Next states of the input (buffers of modules) are kept where the loss is not finite, as the others are.
///   %w = parameter "w"            =>  %p = state "params"  %w = reshape (narrow %p ...)
///   output gradient "w" %g            %g1 = pack %g ...  output next_state "params" %12
/// Neighbouring parameters that are trained make one stretch of the flat states with one update; frozen ones in between cut it, and one
/// of which only some rows are trained is a stretch by itself.
/// Fails when there is no parameter to train (optimizer.C1), nesterov has no momentum (optimizer.C2), accumulate is below 1
/// (optimizer.C3) or the settings name an unknown parameter (optimizer.C4).
Result<graph::Graph> optimizer(const graph::Graph& graph, const OptimizerConfig& config);

}  // namespace lockstep::passes
