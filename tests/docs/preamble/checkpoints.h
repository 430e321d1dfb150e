// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/checkpoints.md stand behind.
#pragma once

#include <lockstep/lockstep.h>

struct Point : ls::Module {
  ls::Parameter at{*this, "at", {1}};
};
struct Stack : ls::Module {
  struct Layer : ls::Module {
    Layer(ls::Module& parent, std::string name) : Module(parent, std::move(name)) {}
    ls::nn::RMSNorm norm{*this, "norm", 4};
    ls::nn::Mamba1 mixer{*this, "mixer", 4, {.states = 2, .bias = true, .x_bias = true}};
  };
  ls::nn::Embedding tokens{*this, "tokens", 5, 4};
  Layer first{*this, "first"};
  ls::nn::RMSNorm norm{*this, "norm", 4};
};
inline ls::ParameterValues makeValues(const ls::Module& model) {
  ls::ParameterValues values;
  uint32_t index = 0;
  for (const ls::NamedParameter& named : model.parameters()) values[named.name] = named.parameter->initial(1, index++);
  return values;
}
inline ls::ModelTrainer<Point> makeTrainer() {
  return ls::compile<Point>({
      .inputs = {{"x", ls::f32(1)}},
      .loss = [](const Point& point, const ls::Inputs& in) { return ls::mean(ls::square(point.at - in["x"])); },
      .device = "reference",
  });
}

/// The first lines of main().
#define LOCKSTEP_DOC_SETUP \
  int64_t epoch = 0;       \
  auto trainer = makeTrainer();
