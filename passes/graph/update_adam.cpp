// SPDX-License-Identifier: Apache-2.0
// Adam: Kingma and Ba, "Adam: a method for stochastic optimization" (2015). AdamW: Loshchilov and Hutter, "Decoupled weight decay
// regularization" (2019).
#include "passes/graph/update_rule.h"

namespace lockstep::passes {

using graph::Builder;
using graph::ValueId;

ValueId movingAverage(Builder& b, ValueId old, double beta, ValueId value) {
  ValueId kept = b.mul(old, beta);
  ValueId added = b.mul(value, 1 - beta);
  return b.add(kept, added);
}

ValueId decayed(const UpdateContext& c) {
  if (!c.decay.valid()) return c.parameter;
  Builder& b = c.builder;
  ValueId shrink = b.mul(c.lr, c.decay);
  return b.sub(c.parameter, b.mul(shrink, c.parameter));
}

namespace {

size_t moments(const OptimizerConfig&) { return 2; }

/// From where decay, if any, has left the parameter.
Updated step(const UpdateContext& c, ValueId parameter) {
  Builder& b = c.builder;
  ValueId m = movingAverage(b, c.moments[0], c.config.beta1, c.gradient);
  ValueId v = movingAverage(b, c.moments[1], c.config.beta2, b.mul(c.gradient, c.gradient));
  ValueId root = b.add(b.make("sqrt", {v}), c.epsilon);
  ValueId step = b.div(b.mul(c.rate, m), root);
  return {b.sub(parameter, step), {m, v}};
}

}  // namespace

const UpdateRule kAdamRule{.moments = moments, .apply = [](const UpdateContext& c) { return step(c, c.parameter); }};
const UpdateRule kAdamWRule{.moments = moments, .apply = [](const UpdateContext& c) { return step(c, decayed(c)); }};

}  // namespace lockstep::passes
