// SPDX-License-Identifier: Apache-2.0
// How one optimizer moves parameters. Each rule is a file passes/update_<name>.cpp.
#pragma once

#include <vector>

#include "ir/graph/builder.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::passes {

/// What a rule sees of one stretch of the flat states; all values are f32 of one shape.
struct UpdateContext {
  graph::Builder& builder;
  const OptimizerConfig& config;
  graph::ValueId parameter, gradient;
  std::vector<graph::ValueId> moments;  ///< as many as the rule keeps
  graph::ValueId rate, lr, epsilon;     ///< as stepScalars says, times the factor of the parameter
  graph::ValueId decay;                 ///< weight decay; invalid where nothing decays
};
/// The next versions.
struct Updated {
  graph::ValueId parameter;
  std::vector<graph::ValueId> moments;
};
struct UpdateRule {
  size_t (*moments)(const OptimizerConfig&);  ///< how many the rule keeps: m, then v
  Updated (*apply)(const UpdateContext&);
};

extern const UpdateRule kAdamRule;  ///< without decay
extern const UpdateRule kAdamWRule;
extern const UpdateRule kSgdRule;
extern const UpdateRule kLionRule;

/// beta · old + (1 - beta) · value.
graph::ValueId movingAverage(graph::Builder& builder, graph::ValueId old, double beta, graph::ValueId value);
/// (1 - lr · decay) · parameter: decay that does not pass through the moments (Loshchilov and Hutter, 2019). The parameter where nothing
/// decays.
graph::ValueId decayed(const UpdateContext& context);

}  // namespace lockstep::passes
