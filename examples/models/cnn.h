// SPDX-License-Identifier: Apache-2.0
// A classifier of 28 x 28 pictures: two 3 x 3 convolutions with max pooling, two linear layers.
#pragma once

#include "frontend/nn/conv.h"
#include "frontend/nn/nn.h"

namespace lockstep::examples {

struct CnnShape {
  int64_t channels1 = 16, channels2 = 32, hidden = 64;
};

/// [B, 1, 28, 28] -> logits [B, 10]
struct Cnn : Module {
  explicit Cnn(const CnnShape& shape = {});
  Tensor operator()(Tensor x) const;
  nn::Conv2d conv1, conv2;
  nn::Linear fc1, fc2;
};

}  // namespace lockstep::examples
