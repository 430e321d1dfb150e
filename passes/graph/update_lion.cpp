// SPDX-License-Identifier: Apache-2.0
// Lion: Chen et al., "Symbolic discovery of optimization algorithms" (2023), algorithm 2. Every element moves by the rate.
#include "passes/graph/update_rule.h"

namespace lockstep::passes {

using graph::Builder;
using graph::ValueId;

namespace {

Updated apply(const UpdateContext& c) {
  Builder& b = c.builder;
  ValueId direction = b.make("sign", {movingAverage(b, c.moments[0], c.config.beta1, c.gradient)});
  ValueId m = movingAverage(b, c.moments[0], c.config.beta2, c.gradient);
  ValueId step = b.mul(c.rate, direction);
  return {b.sub(decayed(c), step), {m}};
}

}  // namespace

const UpdateRule kLionRule{.moments = [](const OptimizerConfig&) { return size_t{1}; }, .apply = apply};

}  // namespace lockstep::passes
