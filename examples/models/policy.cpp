// SPDX-License-Identifier: Apache-2.0
#include "examples/models/policy.h"

#include "frontend/ops.h"

namespace lockstep::examples {

Policy::Policy(const std::vector<int64_t>& widths) {
  for (size_t i = 0; i + 1 < widths.size(); ++i)
    layers.push_back(std::make_unique<nn::Linear>(*this, "l" + std::to_string(i + 1), widths[i], widths[i + 1]));
}

Tensor Policy::operator()(Tensor states) const {
  Tensor x = states;
  for (size_t i = 0; i < layers.size(); ++i) x = i == 0 ? (*layers[i])(x) : (*layers[i])(tanh(x));
  return x;
}

Tensor reinforceLoss(Tensor logits, Tensor actions, Tensor rewards) {
  return mean(cross_entropy(logits, actions, {.reduction = Reduction::None}) * rewards);
}

}  // namespace lockstep::examples
