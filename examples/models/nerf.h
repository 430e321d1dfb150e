// SPDX-License-Identifier: Apache-2.0
// A picture as a function of position: sines and cosines of the coordinates, then a small network that gives the colour.
#pragma once

#include "examples/models/mlp.h"

namespace lockstep::examples {

/// Coordinates [B, 2] in [-1, 1] -> colours [B, 3] in (0, 1).
struct Nerf : Module {
  Tensor operator()(Tensor coordinates) const;
  nn::Linear l1{*this, "l1", 32, 64}, l2{*this, "l2", 64, 64}, l3{*this, "l3", 64, 64}, l4{*this, "l4", 64, 3};
};

}  // namespace lockstep::examples
