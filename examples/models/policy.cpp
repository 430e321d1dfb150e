// SPDX-License-Identifier: Apache-2.0
#include "examples/models/policy.h"

#include "frontend/ops/ops.h"

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

Tensor reinforceLoss(Tensor logits, Tensor actions, Tensor rewards, double entropy) {
  if (entropy == 0) return mean(cross_entropy(logits, actions, {.reduction = Reduction::None}) * rewards);
  // Both terms in one pass over the rows.
  Tensor log_p = log_softmax(logits), chosen = one_hot(actions, logits.extent(-1)) * expand_dims(rewards, -1);
  return sum(log_p * (exp(log_p) * entropy - chosen)) / static_cast<double>(logits.extent(0));
}

}  // namespace lockstep::examples
