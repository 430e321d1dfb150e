// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/training.md stand behind.
#pragma once

#include <lockstep/lockstep.h>

struct Model : ls::Module {
  ls::nn::Linear body{*this, "body", 8, 8}, head{*this, "head", 8, 1};
};
inline ls::Tensor loss(const Model& model, const ls::Inputs& in) {
  return ls::mean(ls::square(ls::reshape(model.head(model.body(in["x"])), {-1}) - in["y"]));
}
struct Pixels : ls::Module {
  ls::nn::Linear head{*this, "head", 16, 4};
};
