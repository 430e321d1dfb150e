// SPDX-License-Identifier: Apache-2.0
// Gradient descent with momentum, v = momentum · v + g and p -= rate · v; nesterov steps along g + momentum · v (Sutskever et al., 2013,
// in PyTorch's form). Weight decay is added to the gradient.
#include "passes/graph/update_rule.h"

namespace lockstep::passes {

using graph::Builder;
using graph::ValueId;

namespace {

Updated apply(const UpdateContext& c) {
  Builder& b = c.builder;
  ValueId step = c.gradient;
  if (c.decay.valid()) step = b.add(step, b.mul(c.decay, c.parameter));
  std::vector<ValueId> moments;
  if (!c.moments.empty()) {
    ValueId velocity = b.add(b.mul(c.moments[0], c.config.momentum), step);
    moments = {velocity};
    step = c.config.nesterov ? b.add(step, b.mul(velocity, c.config.momentum)) : velocity;
  }
  return {b.sub(c.parameter, b.mul(c.rate, step)), std::move(moments)};
}

}  // namespace

const UpdateRule kSgdRule{.moments = [](const OptimizerConfig& config) { return size_t{config.momentum > 0 ? 1u : 0u}; }, .apply = apply};

}  // namespace lockstep::passes
