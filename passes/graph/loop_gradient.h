// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ir/graph/builder.h"

namespace lockstep::passes {

struct LoopGradient {
  std::vector<graph::ValueId> operands;  ///< one per operand of the loop; invalid where nothing flows
  std::vector<bool> stopped;             ///< by operand: an op in the body stops what would flow
};

/// Appends the cotangents of a loop's operands that follow from those of its results (invalid where nothing flows back): a loop from the
/// last iteration to the first over the gradient of the body. It computes the body again from the carries, which are kept as results of the
/// loop. The gradient towards a tensor that all iterations read is not carried along: that of a product is one product over the stacks of
/// what the iterations multiply, any other the sum over a stack.
/// `wanted`: which operands need one. Nothing passes a loop that holds states: their older values are gone.
LoopGradient loopGradient(graph::Builder& builder, const graph::Node& node, std::span<const graph::ValueId> cotangents,
                          const std::vector<bool>& wanted);

}  // namespace lockstep::passes
