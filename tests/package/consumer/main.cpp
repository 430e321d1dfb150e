// SPDX-License-Identifier: Apache-2.0
// Five steps of a small network on the reference; the loss must fall.
#include <lockstep/lockstep.h>
#include <cmath>
#include <cstdio>
#include <vector>

#include "frontend/data/random.h"

struct Mlp : ls::Module {
  ls::nn::Linear l1{*this, "l1", 1, 16}, l2{*this, "l2", 16, 1};
  ls::Tensor operator()(ls::Tensor x) const { return l2(ls::tanh(l1(x))); }
};

int main() {
  auto trainer = ls::compile<Mlp>({
      .inputs = {{"x", ls::f32(32, 1)}, {"y", ls::f32(32, 1)}},
      .loss = [](const Mlp& model, const ls::Inputs& in) { return ls::mean(ls::square(model(in["x"]) - in["y"])); },
      .optimizer = ls::adam({.lr = 1e-2}),
      .seed = 42,
      .device = "reference",
  });
  ls::Random random(42);
  std::vector<float> x, y;
  for (int i = 0; i < 32; ++i) {
    x.push_back(static_cast<float>(random.uniform(-3, 3)));
    y.push_back(std::sin(x.back()));
  }
  float first = 0, last = 0;
  for (int step = 1; step <= 5; ++step) {
    last = trainer.step({{"x", x}, {"y", y}}).loss;
    if (step == 1) first = last;
    std::printf("step %d loss %.6f\n", step, static_cast<double>(last));
  }
  return last < first ? 0 : 1;
}
