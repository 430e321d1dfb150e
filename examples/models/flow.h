// SPDX-License-Identifier: Apache-2.0
// Flow matching (Lipman et al., 2023): a convolutional network learns the velocity from noise to pictures.
#pragma once

#include "frontend/nn/conv.h"
#include "frontend/nn/nn.h"

namespace lockstep::examples {

/// Pictures [B, 1, 28, 28] in [-1, 1] and times i32 [B] from 1 to 100 (hundredths).
struct Flow : Module {
  Tensor operator()(Tensor x, Tensor time) const;
  /// Mean squared error of the velocity at a point between each picture and fresh noise.
  Tensor loss(Tensor pictures, Tensor time) const;

  nn::Embedding t_emb{*this, "t_emb", 101, 32};
  nn::Linear t_proj{*this, "t_proj", 32, 32};
  // Without dilation a pixel sees 9 x 9 pixels, less than a digit; so it sees 23 x 23.
  nn::Conv2d c1{*this, "c1", 1, 32, 3, {.padding = 1}}, c2{*this, "c2", 32, 32, 3, {.padding = 3, .dilation = 3}};
  nn::Conv2d c3{*this, "c3", 32, 32, 3, {.padding = 6, .dilation = 6}}, c4{*this, "c4", 32, 1, 3, {.padding = 1}};
};

}  // namespace lockstep::examples
