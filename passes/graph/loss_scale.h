// SPDX-License-Identifier: Apache-2.0
// Private to grad and optimizer: dynamic loss scaling, which keeps small gradients above the smallest number of f16 (Micikevicius and
// others, "Mixed Precision Training", 2018). grad begins with the scale in place of 1; the optimizer divides by it before it looks at
// gradients. A scale is a power of two, so neither rounds.
#pragma once

#include "ir/graph/builder.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::passes {

/// The state of the scale as a scalar; makes its leaf.
graph::ValueId lossScale(graph::Builder& builder, double initial);

/// What a run says of the scale, all scalars.
struct ScaleFacts {
  graph::ValueId leaf;   ///< the state of the scale, f32[1]
  graph::ValueId norm;   ///< of all gradients, after the division
  graph::ValueId open;   ///< bool: the run updates the parameters
  graph::ValueId count;  ///< bool: the run ends a step; invalid where every run does
};
/// The next versions of both states, and the scale of this run as the result kLossScale. Gradients that are not finite halve the scale,
/// down to 1; so many updates as growth_interval in a row double it, up to kLargestLossScale.
void updateLossScale(graph::Builder& builder, const LossScaling& config, const ScaleFacts& facts);

}  // namespace lockstep::passes
