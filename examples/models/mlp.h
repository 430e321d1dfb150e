// SPDX-License-Identifier: Apache-2.0
// Linear layers l1, l2, ... with ReLU between them; the network that fits a sine, and its data.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frontend/nn/nn.h"

namespace lockstep::examples {

struct Mlp : Module {
  /// widths.front() inputs, widths.back() outputs; at least two widths.
  explicit Mlp(const std::vector<int64_t>& widths);
  Tensor operator()(Tensor x) const;
  std::vector<std::unique_ptr<nn::Linear>> layers;
};

/// [B, 784] -> logits [B, 10]; a tenth of the hidden units drop out in training.
struct DigitMlp : Module {
  explicit DigitMlp(int64_t hidden) : l1(*this, "l1", 784, hidden), l2(*this, "l2", hidden, 10) {}
  Tensor operator()(Tensor x) const;
  nn::Linear l1, l2;
  nn::Dropout drop{0.1};
};

/// y = sin(x) for x uniform in [-pi, pi): the data of one step, which depends on seed and step only.
struct SineBatch {
  std::vector<float> x, y;
};
SineBatch sineBatch(uint64_t seed, uint64_t step, size_t count);

}  // namespace lockstep::examples
