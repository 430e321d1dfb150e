// SPDX-License-Identifier: Apache-2.0
// A policy for games: linear layers with tanh between them that give one logit per action, trained by REINFORCE (Williams, 1992).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frontend/nn/nn.h"

namespace lockstep::examples {

/// States [B, widths.front()] -> logits [B, widths.back()].
struct Policy : Module {
  explicit Policy(const std::vector<int64_t>& widths);
  Tensor operator()(Tensor states) const;
  std::vector<std::unique_ptr<nn::Linear>> layers;
};

/// -sum(log p(action) · reward) / slots over f32 logits [slots, A], i32 actions [slots] and f32 rewards [slots], which are 0 in empty
/// slots; less `entropy` times the mean entropy of the policies, which keeps moves open (Williams and Peng, 1991).
Tensor reinforceLoss(Tensor logits, Tensor actions, Tensor rewards, double entropy = 0);

}  // namespace lockstep::examples
