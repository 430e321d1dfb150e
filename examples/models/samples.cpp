// SPDX-License-Identifier: Apache-2.0
#include "examples/models/samples.h"

#include "examples/models/cnn.h"
#include "examples/models/flow.h"
#include "examples/models/kan.h"
#include "examples/models/mlp.h"
#include "examples/models/nerf.h"
#include "examples/models/pokeformer.h"
#include "examples/models/policy.h"
#include "examples/models/transformer.h"
#include "examples/models/vae.h"
#include "frontend/ops.h"

namespace lockstep::examples {

namespace {

template <class Model, class Loss>
SampleProgram program(std::string_view name, std::vector<InputSpec> inputs, std::shared_ptr<const Model> model, Loss loss,
                      OptimizerSpec optimizer, int64_t integers = 0) {
  auto traced = [loss](const Module& module, const Inputs& in) { return loss(static_cast<const Model&>(module), in); };
  return {name, std::move(inputs), model, traced, std::move(optimizer), integers};
}

OptimizerSpec linearAdamW() {
  return adamw({.lr = schedule::linear({.peak = 0.005, .final = 0.0005, .steps = 1500}), .weight_decay = 0.01, .clip_grad_norm = 1});
}

/// Cross-entropy of each token, weighted by in["mask"].
template <class Model>
Tensor maskedLoss(const Model& model, const Inputs& in) {
  return sum(cross_entropy(model(in["tokens"]), in["targets"], {.reduction = Reduction::None}) * in["mask"]);
}

std::vector<InputSpec> tokenInputs(int64_t batch, int64_t length) {
  return {{"tokens", i32(batch, length)}, {"targets", i32(batch, length)}, {"mask", f32(batch, length)}};
}

Tensor squaredError(Tensor y, Tensor wanted) { return mean(square(y - wanted)); }

}  // namespace

std::vector<SampleProgram> samplePrograms() {
  std::vector<SampleProgram> all;
  all.push_back(program(
      "mlp-sin", {{"x", f32(256, 1)}, {"y", f32(256, 1)}}, std::make_shared<const Mlp>(std::vector<int64_t>{1, 64, 64, 1}),
      [](const Mlp& m, const Inputs& in) { return squaredError(m(in["x"]), in["y"]); }, adam({.lr = 0.005})));
  all.push_back(program(
      "kan-tiny", {{"x", f32(256, 1)}, {"y", f32(256, 1)}}, std::make_shared<const Kan>(),
      [](const Kan& m, const Inputs& in) { return squaredError(m(in["x"]), in["y"]); }, adam({.lr = 0.005})));
  all.push_back(program(
      "nerf-tiny", {{"coordinates", f32(1024, 2)}, {"colours", f32(1024, 3)}}, std::make_shared<const Nerf>(),
      [](const Nerf& m, const Inputs& in) { return squaredError(m(in["coordinates"]), in["colours"]); }, adam({.lr = 1e-3})));
  all.push_back(program(
      "cartpole", {{"states", f32(3200, 4)}, {"actions", i32(3200)}, {"rewards", f32(3200)}},
      std::make_shared<const Policy>(std::vector<int64_t>{4, 16, 2}),
      [](const Policy& m, const Inputs& in) { return reinforceLoss(m(in["states"]), in["actions"], in["rewards"]); }, adam({.lr = 5e-3}),
      2));
  all.push_back(program(
      "tic-tac-toe", {{"states", f32(144, 27)}, {"legal", f32(144, 9)}, {"actions", i32(144)}, {"rewards", f32(144)}},
      std::make_shared<const Policy>(std::vector<int64_t>{27, 64, 64, 9}),
      [](const Policy& m, const Inputs& in) {
        return reinforceLoss(where(in["legal"] > 0, m(in["states"]), -1e9), in["actions"], in["rewards"]);
      },
      adam({.lr = 5e-3}), 9));
  all.push_back(program(
      "digit-canvas", {{"x", f32(64, 784)}, {"y", i32(64)}}, std::make_shared<const Mlp>(std::vector<int64_t>{784, 64, 10}),
      [](const Mlp& m, const Inputs& in) {
        Tensor hidden = dropout(relu((*m.layers[0])(in["x"])), 0.1);
        return cross_entropy((*m.layers[1])(hidden), in["y"]);
      },
      adamw({.lr = 1e-3, .weight_decay = 0.01, .clip_grad_norm = 1}), 10));
  all.push_back(program(
      "mnist-cnn", {{"x", f32(64, 1, 28, 28)}, {"y", i32(64)}}, std::make_shared<const Cnn>(),
      [](const Cnn& m, const Inputs& in) { return cross_entropy(m(in["x"]), in["y"]); },
      adamw({.lr = 1e-3, .weight_decay = 0.01, .clip_grad_norm = 1}), 10));
  all.push_back(program(
      "vae", {{"x", f32(128, 784)}}, std::make_shared<const Vae>(), [](const Vae& m, const Inputs& in) { return m.loss(in["x"]); },
      adam({.lr = 1e-3, .clip_grad_norm = 1})));
  all.push_back(program(
      "flow-matching-tiny", {{"x", f32(64, 1, 28, 28)}, {"time", i32(64)}}, std::make_shared<const Flow>(),
      [](const Flow& m, const Inputs& in) { return m.loss(in["x"], in["time"]); }, adam({.lr = 2e-4, .clip_grad_norm = 1}), 100));
  all.push_back(
      program("pokeformer", tokenInputs(32, 16), std::make_shared<const Pokeformer>(), maskedLoss<Pokeformer>, linearAdamW(), 27));
  all.push_back(program("makemore", tokenInputs(32, 16),
                        std::make_shared<const Transformer>(TransformerShape{.vocabulary = 27, .sequence = 17}), maskedLoss<Transformer>,
                        linearAdamW(), 27));
  all.push_back(
      program("transformer", tokenInputs(128, 8), std::make_shared<const Transformer>(), maskedLoss<Transformer>, linearAdamW(), 12));
  return all;
}

}  // namespace lockstep::examples
