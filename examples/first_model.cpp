// SPDX-License-Identifier: Apache-2.0
// Fits sin(x) with a small network: the whole of a Lockstep program.
#include <fmt/core.h>

#include <cmath>
#include <random>

#include "frontend/lockstep.h"

struct Mlp : ls::Module {
  ls::nn::Linear l1{*this, "l1", 1, 64}, l2{*this, "l2", 64, 64}, l3{*this, "l3", 64, 1};
  ls::Tensor operator()(ls::Tensor x) const { return l3(ls::relu(l2(ls::relu(l1(x))))); }
};

int main() {
  auto trainer = ls::compile<Mlp>({
      .inputs = {{"x", ls::f32(256, 1)}, {"y", ls::f32(256, 1)}},
      .loss = [](const Mlp& model, const ls::Inputs& in) { return ls::mean(ls::square(model(in["x"]) - in["y"])); },
      .optimizer = ls::adam({.lr = 5e-3}),
      .seed = 42,
  });
  fmt::print("training on {}\n", trainer.facts().device_name);

  std::mt19937 random(42);
  std::vector<float> xs(256), ys(256);
  for (int step = 1; step <= 1000; ++step) {
    for (size_t i = 0; i < xs.size(); ++i) {
      xs[i] = std::uniform_real_distribution<float>(-3.14159265f, 3.14159265f)(random);
      ys[i] = std::sin(xs[i]);
    }
    auto result = trainer.step({{"x", xs}, {"y", ys}});
    if (step % 100 == 0) fmt::print("step {} loss {:.2e}\n", step, result.loss);
  }
}
