// SPDX-License-Identifier: Apache-2.0
#include "examples/models/samples.h"

#include "frontend/ops/ops.h"

namespace lockstep::examples {

namespace {

OptimizerSpec linearAdamW() {
  return adamw({.lr = schedule::linear({.peak = 0.005, .final = 0.0005, .steps = 1500}), .weight_decay = 0.01}, {.clip_grad_norm = 1});
}

OptimizerSpec classifierAdamW() { return adamw({.lr = 1e-3, .weight_decay = 0.01}, {.clip_grad_norm = 1}); }

/// Cross-entropy of each token, weighted by in["mask"].
template <class Model>
Tensor maskedLoss(const Model& model, const Inputs& in) {
  return sum(cross_entropy(model(in["tokens"]), in["targets"], {.reduction = Reduction::None}) * in["mask"]);
}

/// Mean squared error of the model of the first input against the second.
template <class Model>
CompileSpec<Model> regression(std::vector<InputSpec> inputs, const OptimizerSpec& optimizer) {
  return {
      .inputs = inputs,
      .loss = [x = inputs[0].name, y = inputs[1].name](const Model& model, const Inputs& in) { return mean(square(model(in[x]) - in[y])); },
      .optimizer = std::move(optimizer)};
}

template <class Model>
SampleProgram program(std::string_view name, CompileSpec<Model> spec, int64_t integers = 0) {
  auto traced = [loss = std::move(spec.loss)](const Module& module, const Inputs& in) {
    return loss(static_cast<const Model&>(module), in);
  };
  return {name, std::move(spec.inputs), detail::makeModel<Model>(spec.make), traced, std::move(spec.optimizer), integers};
}

}  // namespace

std::vector<InputSpec> tokenInputs(int64_t batch, int64_t length) {
  return {{"tokens", i32(batch, length)}, {"targets", i32(batch, length)}, {"mask", f32(batch, length)}};
}

CompileSpec<Mlp> sineSpec() {
  CompileSpec<Mlp> spec = regression<Mlp>({{"x", f32(256, 1)}, {"y", f32(256, 1)}}, adam({.lr = 0.005}));
  spec.make = [] { return std::make_unique<Mlp>(std::vector<int64_t>{1, 64, 64, 1}); };
  return spec;
}

CompileSpec<Kan> kanSpec() { return regression<Kan>({{"x", f32(256, 1)}, {"y", f32(256, 1)}}, adam({.lr = 0.005})); }

CompileSpec<Nerf> nerfSpec() { return regression<Nerf>({{"coordinates", f32(1024, 2)}, {"colours", f32(1024, 3)}}, adam({.lr = 1e-3})); }

CompileSpec<Policy> cartpoleSpec() {
  return {.inputs = {{"states", f32(3200, 4)}, {"actions", i32(3200)}, {"rewards", f32(3200)}},
          .loss = [](const Policy& model, const Inputs& in) { return reinforceLoss(model(in["states"]), in["actions"], in["rewards"]); },
          .optimizer = adam({.lr = 5e-3}),
          .make = [] { return std::make_unique<Policy>(std::vector<int64_t>{4, 16, 2}); }};
}

CompileSpec<Policy> ticTacToeSpec() {
  return {.inputs = {{"states", f32(144, 27)}, {"legal", f32(144, 9)}, {"actions", i32(144)}, {"rewards", f32(144)}},
          .loss =
              [](const Policy& model, const Inputs& in) {
                return reinforceLoss(where(in["legal"] > 0, model(in["states"]), -1e9), in["actions"], in["rewards"], 0.15);
              },
          .optimizer = adam({.lr = schedule::linear({.peak = 5e-3, .final = 1e-3, .steps = 4000})}),
          .make = [] { return std::make_unique<Policy>(std::vector<int64_t>{27, 64, 64, 9}); }};
}

CompileSpec<DigitMlp> digitSpec(int64_t hidden) {
  return {.inputs = {{"x", f32(64, 784)}, {"y", i32(64)}},
          .loss = [](const DigitMlp& model, const Inputs& in) { return cross_entropy(model(in["x"]), in["y"]); },
          .optimizer = classifierAdamW(),
          .make = [hidden] { return std::make_unique<DigitMlp>(hidden); }};
}

CompileSpec<Cnn> cnnSpec() {
  return {.inputs = {{"x", f32(64, 1, 28, 28)}, {"y", i32(64)}},
          .loss = [](const Cnn& model, const Inputs& in) { return cross_entropy(model(in["x"]), in["y"]); },
          .optimizer = classifierAdamW()};
}

CompileSpec<Vae> vaeSpec() {
  return {.inputs = {{"x", f32(128, 784)}},
          .loss = [](const Vae& model, const Inputs& in) { return model.loss(in["x"]); },
          .optimizer = adam({.lr = 1e-3}, {.clip_grad_norm = 1})};
}

CompileSpec<Flow> flowSpec() {
  return {.inputs = {{"x", f32(64, 1, 28, 28)}, {"time", i32(64)}},
          .loss = [](const Flow& model, const Inputs& in) { return model.loss(in["x"], in["time"]); },
          .optimizer = adam({.lr = 1e-3}, {.clip_grad_norm = 1})};
}

CompileSpec<Pokeformer> pokeformerSpec() {
  return {.inputs = tokenInputs(32, 16), .loss = maskedLoss<Pokeformer>, .optimizer = linearAdamW()};
}

CompileSpec<Transformer> makemoreSpec() {
  return {.inputs = tokenInputs(32, 16), .loss = maskedLoss<Transformer>, .optimizer = linearAdamW(), .make = [] {
            return std::make_unique<Transformer>(TransformerShape{.vocabulary = 27, .sequence = 17});
          }};
}

CompileSpec<Transformer> charGptSpec() {
  return {
      .inputs = {{"tokens", i32(16, 64)}, {"targets", i32(16, 64)}},
      .loss = [](const Transformer& model, const Inputs& in) { return cross_entropy(model(in["tokens"]), in["targets"]); },
      .optimizer = adamw(
          {.lr = schedule::warmup({.peak = 0.004, .steps = 20, .after = schedule::linear({.peak = 0.004, .final = 0.0005, .steps = 580})}),
           .weight_decay = 0.01},
          {.clip_grad_norm = 1}),
      .make =
          [] {
            return std::make_unique<Transformer>(TransformerShape{.vocabulary = 128, .width = 64, .layers = 3, .heads = 4, .sequence = 64});
          }};
}

std::vector<SampleProgram> samplePrograms() {
  // tensorgrad's inputs, where the mask is one; the sample's own program has it as a constant.
  CompileSpec<Transformer> transformer{.inputs = tokenInputs(128, 8), .loss = maskedLoss<Transformer>, .optimizer = linearAdamW()};
  return {program("mlp-sin", sineSpec()),
          program("kan-tiny", kanSpec()),
          program("nerf-tiny", nerfSpec()),
          program("cartpole", cartpoleSpec(), 2),
          program("tic-tac-toe", ticTacToeSpec(), 9),
          program("digit-canvas", digitSpec(64), 10),
          program("mnist-cnn", cnnSpec(), 10),
          program("vae", vaeSpec()),
          program("flow-matching-tiny", flowSpec(), 100),
          program("pokeformer", pokeformerSpec(), 27),
          program("makemore", makemoreSpec(), 27),
          program("transformer", std::move(transformer), 12)};
}

}  // namespace lockstep::examples
