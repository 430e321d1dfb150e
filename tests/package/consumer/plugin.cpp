// SPDX-License-Identifier: Apache-2.0
// A shared library that trains: what it exports is this function, and what the compiler makes here of inline functions.
#include <lockstep/lockstep.h>

#include <vector>

struct Line : ls::Module {
  ls::nn::Linear line{*this, "line", 1, 1};
};

extern "C" float plugin_loss(const char* device) {
  auto trainer = ls::compile<Line>({
      .inputs = {{"x", ls::f32(4, 1)}, {"y", ls::f32(4, 1)}},
      .loss = [](const Line& model, const ls::Inputs& in) { return ls::mean(ls::square(model.line(in["x"]) - in["y"])); },
      .optimizer = ls::adam({.lr = 1e-2}),
      .device = device,
  });
  const std::vector<float> x{1, 2, 3, 4}, y{3, 5, 7, 9};
  return trainer.step({{"x", x}, {"y", y}}).loss;
}
