// SPDX-License-Identifier: Apache-2.0
// Private to the optimizer pass: which steps count.
//
// A step counts when its loss and its gradient norm are finite and no index was outside of its range; else all states stay as they were
// (OptimizerConfig::skip_non_finite). A flag that is computed once would cost a dispatch and a level in every step, so the fact travels in
// values that the kernels read anyway:
//   1. An index outside of its range makes the loss infinite, so whoever looks at the loss needs to look at nothing else.
//   2. Every kernel that writes a state tests the loss itself, and the norm if there is one.
//   3. Where gradients have a norm, the update reads one number, the scale of clipping: 0 says that the step does not count. Its kernel may
//      not be able to bind the loss as well.
//   4. With several runs per step, a run that does not count leaves kSpoiled in the sum of gradients. No sum of finite gradients is as
//      large, and it stays until the last run, so the whole step is left out.
// A condition that is an invalid value holds always: nobody asked.
#pragma once

#include "ir/graph/builder.h"
#include "passes/graph/optimizer_config.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

class StepGuard {
 public:
  StepGuard(const graph::Graph& graph, Rewriter& rewriter, const OptimizerConfig& config)
      : in_(graph), rewriter_(rewriter), config_(config) {}

  /// Takes the loss of the step and gives it as the user sees it: infinite where an index was wrong (1).
  graph::ValueId watch(graph::ValueId loss);

  /// Whether the loss is finite, everywhere in a shape.
  graph::ValueId isLossFinite(const graph::Shape& shape);
  /// Whether loss and norm are (2); the norm may be invalid.
  graph::ValueId isFinite(graph::ValueId norm, const graph::Shape& shape);
  /// The scale, or 0 where the step does not count (3).
  graph::ValueId closedScale(graph::ValueId norm, graph::ValueId scale);
  /// The sum after one more run, kSpoiled where this run or one before does not count (4).
  graph::ValueId spoiledSum(graph::ValueId sum_before, graph::ValueId sum);
  /// Whether no run spoiled the sum.
  graph::ValueId isSound(graph::ValueId sum);

  /// Both conditions, of which either may be invalid.
  graph::ValueId both(graph::ValueId a, graph::ValueId c);
  /// `now` where the condition holds, else `before`.
  graph::ValueId chosen(graph::ValueId condition, graph::ValueId now, graph::ValueId before);

 private:
  graph::Builder& b() { return rewriter_.builder(); }

  const graph::Graph& in_;
  Rewriter& rewriter_;
  const OptimizerConfig& config_;
  graph::ValueId loss_;  ///< invalid when there is none
};

}  // namespace lockstep::passes
