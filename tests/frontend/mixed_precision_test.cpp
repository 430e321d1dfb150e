// SPDX-License-Identifier: Apache-2.0
// Training in mixed precision: curves beside f32's, loss scaling, and the rest of what a trainer does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

CompileSpec<Mlp> mixedSpec(const std::string& device, Precision precision) {
  CompileSpec<Mlp> spec = specFor(device);
  spec.precision = precision;
  return spec;
}

std::vector<StepResult> train(ModelTrainer<Mlp>& trainer, size_t steps) {
  Data data;
  return trainer.steps(steps, [&](size_t i) {
    data = dataOf(i);
    return batchOf(data);
  });
}

float lossAfter(ModelTrainer<Mlp>& trainer, size_t steps) {
  float loss = 0;
  for (const StepResult& result : train(trainer, steps)) loss = result.or_throw().loss;
  return loss;
}

class Mixed : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Mixed, ::testing::Values("reference", "vulkan"));

TEST(Precisions, are_named_by_types_and_by_the_functions_that_declare_them) {
  EXPECT_EQ(mixed(bf16).dtype, DType::BF16);
  EXPECT_EQ(mixed(f16, {.initial = 8}).loss_scale.initial, 8);
  EXPECT_EQ(mixed(DType::F32).dtype, DType::F32);
}

TEST(Precisions, out_of_range_are_refused) {
  EXPECT_EQ(caught([] { (void)mixed(i32); }).diagnostics()[0].code, "precision.type");
  for (const double initial : {0.5, 3.0, 33554432.0, -2.0, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_EQ(caught([&] { (void)mixed(f16, {.initial = initial}); }).diagnostics()[0].code, "precision.loss_scale") << initial;
  EXPECT_EQ(caught([] { (void)mixed(f16, {.growth_interval = 0}); }).diagnostics()[0].code, "precision.loss_scale");
  // As somebody makes it without mixed().
  EXPECT_EQ(caught([] { (void)trace(mixedSpec("reference", {.dtype = DType::U8})); }).diagnostics()[0].code, "precision.type");
  CompileSpec<Mlp> spec = mixedSpec("reference", mixed(f16));
  spec.optimizer = adam({.lr = 0.01}, {.skip_non_finite = false});
  EXPECT_EQ(caught([&] { (void)compile<Mlp>(spec); }).diagnostics()[0].code, "precision.skip");
}

TEST_P(Mixed, training_ends_where_that_in_f32_does) {
  constexpr size_t kSteps = 60;
  auto exact = compile<Mlp>(specFor(GetParam()));
  const float wanted = lossAfter(exact, kSteps);
  for (const Precision& precision : {mixed(bf16), mixed(f16)}) {
    auto trainer = compile<Mlp>(mixedSpec(GetParam(), precision));
    const float loss = lossAfter(trainer, kSteps);
    EXPECT_NE(loss, wanted) << "nothing was rounded";
    EXPECT_NEAR(loss, wanted, 0.01 * std::max(wanted, 0.05f)) << toString(precision.dtype);
  }
}

/// The products of a loop's body are rounded, and so are the stacks of what they multiply, of which the gradients are made.
TEST_P(Mixed, recurrent_layers_end_where_those_in_f32_do) {
  struct Model : Module {
    nn::GRU gru{*this, "gru", 3, 8, {.bidirectional = true}};
    nn::Linear head{*this, "head", 16, 1};
  };
  const auto lossIn = [&](const Precision& precision) {
    auto trainer =
        compile<Model>({.inputs = {{"x", f32(4, 12, 3)}, {"y", f32(4, 12, 1)}},
                        .loss = [](const Model& m, const Inputs& in) { return mean(square(m.head(m.gru(in["x"]).y) - in["y"])); },
                        .optimizer = adam({.lr = 0.01}),
                        .precision = precision,
                        .seed = 3,
                        .device = GetParam()});
    std::vector<float> x(4 * 12 * 3), y(4 * 12);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[i * 3] * (i == 0 ? 0 : x[i * 3 - 1]);
    float loss = 0;
    for (int step = 0; step < 40; ++step) loss = trainer.step({{"x", x}, {"y", y}}).loss;
    return loss;
  };
  const float wanted = lossIn({});
  for (const Precision& precision : {mixed(bf16), mixed(f16)}) {
    const float loss = lossIn(precision);
    EXPECT_NE(loss, wanted) << "nothing was rounded";
    EXPECT_NEAR(loss, wanted, 0.05 * wanted) << toString(precision.dtype);
  }
}

/// The projections are rounded; scans stay f32, and so do their states.
TEST_P(Mixed, state_space_mixers_end_where_those_in_f32_do) {
  struct Model : Module {
    nn::Linear in{*this, "in", 3, 8, {.init = init::randn(0.5)}};
    nn::Mamba1 first{*this, "first", 8, {.states = 4, .init = init::randn(0.3)}};
    nn::Mamba2 second{*this, "second", 8, {.states = 4, .head_width = 8, .chunk = 4, .init = init::randn(0.3)}};
    nn::Linear head{*this, "head", 8, 1, {.init = init::randn(0.5)}};
    Tensor operator()(Tensor x) const {
      Tensor h = in(x);
      h = h + first(h);
      return head(h + second(h));
    }
  };
  const auto lossIn = [&](const Precision& precision) {
    auto trainer = compile<Model>({.inputs = {{"x", f32(4, 12, 3)}, {"y", f32(4, 12, 1)}},
                                   .loss = [](const Model& m, const Inputs& in) { return mean(square(m(in["x"]) - in["y"])); },
                                   .optimizer = adam({.lr = 0.01}),
                                   .precision = precision,
                                   .seed = 3,
                                   .device = GetParam()});
    std::vector<float> x(4 * 12 * 3), y(4 * 12);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(std::cos(0.3 * static_cast<double>(i)));
    float loss = 0;
    for (int step = 0; step < 40; ++step) loss = trainer.step({{"x", x}, {"y", y}}).or_throw().loss;
    return loss;
  };
  const float wanted = lossIn({});
  for (const Precision& precision : {mixed(bf16), mixed(f16)}) {
    const float loss = lossIn(precision);
    EXPECT_NE(loss, wanted) << "nothing was rounded";
    EXPECT_NEAR(loss, wanted, 0.05 * std::max(wanted, 0.05f)) << toString(precision.dtype);
  }
}

TEST_P(Mixed, rounds_results_as_the_type_does) {
  auto trainer = compile<Mlp>(mixedSpec(GetParam(), mixed(bf16)));
  auto forward = trainer.attach({.inputs = {{"x", f32(kBatch, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }});
  const Data data = dataOf(0);
  const ForwardResult result = forward.run({{"x", data.x}});
  for (const float y : result.output.floats()) EXPECT_EQ(y, static_cast<float>(graph::roundedTo(DType::BF16, y)));
}

TEST_P(Mixed, keep_f32_leaves_everything_as_it_was) {
  const auto lossOf = [](const Mlp& m, const Inputs& in) {
    const auto kept = [](const nn::Linear& layer, Tensor x) {
      return keep_f32(matmul(keep_f32(x), keep_f32(layer.W.tensor())) + *layer.b);
    };
    return mean(square(kept(m.l2, relu(kept(m.l1, in["x"]))) - in["y"]));
  };
  CompileSpec<Mlp> plain = specFor(GetParam()), exempt = mixedSpec(GetParam(), mixed(bf16));
  plain.loss = lossOf;
  exempt.loss = lossOf;
  auto exact = compile<Mlp>(plain), trainer = compile<Mlp>(exempt);
  EXPECT_EQ(lossAfter(exact, 5), lossAfter(trainer, 5));
}

TEST_P(Mixed, resumes_bit_by_bit) {
  for (const Precision& precision : {mixed(bf16), mixed(f16, {.growth_interval = 3})}) {
    auto whole = compile<Mlp>(mixedSpec(GetParam(), precision));
    (void)lossAfter(whole, 4);
    const io::TensorFile saved = whole.checkpoint();
    (void)lossAfter(whole, 4);
    auto resumed = compile<Mlp>(mixedSpec(GetParam(), precision));
    (void)resumed.restore(saved);
    (void)lossAfter(resumed, 4);
    EXPECT_EQ(resumed.checkpoint().tensors, whole.checkpoint().tensors);
    // Masters are f32.
    EXPECT_EQ(saved.tensors.at("l1.W").type, io::ElementType::F32);
  }
}

TEST_P(Mixed, scale_doubles_after_so_many_updates) {
  auto trainer = compile<Mlp>(mixedSpec(GetParam(), mixed(f16, {.initial = 4, .growth_interval = 2})));
  std::vector<float> scales;
  for (const StepResult& result : train(trainer, 6)) {
    EXPECT_FALSE(result.overflowed);
    ASSERT_TRUE(result.grad_norm.has_value());
    scales.push_back(result.loss_scale.value());
  }
  EXPECT_EQ(scales, (std::vector<float>{4, 4, 8, 8, 16, 16}));
  auto low = compile<Mlp>(mixedSpec(GetParam(), mixed(bf16)));
  EXPECT_FALSE(train(low, 1).front().loss_scale.has_value());
}

/// Its gradient is x times the scale, in f16.
struct Slope : Module {
  Parameter w{*this, "w", {1, 1}, init::literal({1})};
  Buffer steps{*this, "steps", {}};
};
CompileSpec<Slope> slopeSpec(const std::string& device, const LossScaleOptions& scale, const OptimizerCommon& common = {}) {
  return {.inputs = {{"x", f32(1, 1)}},
          .loss =
              [](const Slope& m, const Inputs& in) {
                m.steps.update(m.steps + 1.0);
                return sum(matmul(matmul(in["x"], m.w), constant(std::vector<float>{16}, {1, 1})));
              },
          .optimizer = adam({.lr = 0.1}, common),
          .precision = mixed(f16, scale),
          .seed = 1,
          .device = device};
}
const std::vector<float> kOne{1};

TEST_P(Mixed, overflow_halves_the_scale_and_changes_nothing_else) {
  // 16 x 8192 is above the largest f16, 16 x 4096 as well (it rounds to infinity), 16 x 2048 is not.
  for (const OptimizerCommon& common : {OptimizerCommon{}, OptimizerCommon{.clip_grad_norm = 1}, OptimizerCommon{.clip_grad_value = 1},
                                        OptimizerCommon{.clip_grad_norm = 1, .clip_grad_value = 1}}) {
    auto trainer = compile<Slope>(slopeSpec(GetParam(), {.initial = 8192}, common));
    auto before = trainer.checkpoint().tensors;
    for (const float scale : {8192.0f, 4096.0f}) {
      const StepResult result = trainer.step({{"x", kOne}});
      EXPECT_TRUE(result.completed());
      EXPECT_TRUE(result.overflowed);
      EXPECT_EQ(result.loss_scale, scale);
      auto after = trainer.checkpoint().tensors;
      EXPECT_EQ(after.at("loss_scale").toFloats(), std::vector<float>{scale / 2});
      for (auto* tensors : {&before, &after}) tensors->erase("loss_scale");
      EXPECT_EQ(before, after);
    }
    const StepResult result = trainer.step({{"x", kOne}});
    EXPECT_FALSE(result.overflowed);
    EXPECT_EQ(result.loss_scale, 2048);
    EXPECT_EQ(result.grad_norm, common.clip_grad_value > 0 && common.clip_grad_norm > 0 ? 1 : 16);
    EXPECT_NE(trainer.checkpoint().tensors.at("w"), before.at("w"));
  }
}

TEST_P(Mixed, clipping_and_accumulation_see_gradients_without_the_scale) {
  const auto movedBy = [&](double scale, int64_t accumulate) {
    CompileSpec<Slope> spec = slopeSpec(GetParam(), {.initial = scale}, {.clip_grad_norm = 4});
    spec.optimizer = sgd({.lr = 0.5}, {.clip_grad_norm = 4, .clip_epsilon = 0});
    spec.accumulate = accumulate;
    auto trainer = compile<Slope>(spec);
    const StepResult result = trainer.step({{"x", std::vector<float>(static_cast<size_t>(accumulate), 1.0f)}});
    EXPECT_EQ(result.or_throw().grad_norm, 16);
    return trainer.download().at("w");
  };
  EXPECT_EQ(movedBy(1, 1), std::vector<float>{-1});
  EXPECT_EQ(movedBy(1024, 1), std::vector<float>{-1});
  EXPECT_EQ(movedBy(1024, 4), std::vector<float>{-1});
}

TEST_P(Mixed, accumulated_runs_that_overflow_leave_out_the_whole_step) {
  CompileSpec<Slope> spec = slopeSpec(GetParam(), {.initial = 4096});
  spec.accumulate = 2;
  auto trainer = compile<Slope>(spec);
  const std::vector<float> first_overflows{1, 0.25f}, both_fine{0.25f, 0.25f};
  const StepResult result = trainer.step({{"x", first_overflows}});
  EXPECT_TRUE(result.overflowed);
  EXPECT_EQ(trainer.download().at("w"), std::vector<float>{1});
  const StepResult next = trainer.step({{"x", both_fine}});
  EXPECT_EQ(next.loss_scale, 2048);
  EXPECT_FALSE(next.overflowed);
  EXPECT_NE(trainer.download().at("w"), std::vector<float>{1});
}

TEST_P(Mixed, gradients_that_overflow_without_a_scale_are_a_failure) {
  const std::vector<float> large{8192};
  auto trainer = compile<Slope>(slopeSpec(GetParam(), {.initial = 1}));
  const StepResult result = trainer.step({{"x", large}});
  ASSERT_FALSE(result.completed());
  EXPECT_EQ(result.failure->kind, FailureKind::NonFinite);
  EXPECT_FALSE(result.overflowed);
}

TEST_P(Mixed, checkpoints_of_another_precision_that_lack_the_scale_are_refused) {
  auto exact = compile<Mlp>(specFor(GetParam()));
  auto scaled = compile<Mlp>(mixedSpec(GetParam(), mixed(f16)));
  EXPECT_EQ(caught([&] { (void)scaled.restore(exact.checkpoint()); }).diagnostics()[0].code, "checkpoint.state");
  // A state dict has parameters only.
  EXPECT_TRUE(scaled.load_state_dict(exact.state_dict()).missing.empty());
}

}  // namespace
}  // namespace lockstep
