// SPDX-License-Identifier: Apache-2.0
#include "frontend/optimizer_settings.h"

#include <cmath>

#include "passes/adam.h"

namespace lockstep::detail {

passes::OptimizerConfig optimizerConfig(const OptimizerSpec& spec, const std::vector<graph::ParameterInfo>&) {
  static constexpr passes::OptimizerKind kKinds[] = {passes::OptimizerKind::Adam, passes::OptimizerKind::AdamW, passes::OptimizerKind::Sgd};
  return {.kind = kKinds[static_cast<size_t>(spec.name)],
          .beta1 = spec.beta1,
          .beta2 = spec.beta2,
          .epsilon = spec.eps,
          .weight_decay = spec.weight_decay,
          .momentum = spec.momentum,
          .nesterov = spec.nesterov,
          .clip_grad_norm = spec.clip_grad_norm,
          .clip_epsilon = spec.clip_epsilon};
}

Scalars stepScalars(const OptimizerSpec& spec, uint64_t t) {
  double lr = rateAt(spec.lr, static_cast<int64_t>(t)), rate = lr;
  if (spec.name != OptimizerName::Sgd) {
    double power = static_cast<double>(t);
    rate *= std::sqrt(1 - std::pow(spec.beta2, power)) / (1 - std::pow(spec.beta1, power));
  }
  return {{passes::kRateInput, {rate}}, {passes::kShrinkInput, {lr * spec.weight_decay}}};
}

}  // namespace lockstep::detail
