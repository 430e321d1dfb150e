// SPDX-License-Identifier: Apache-2.0
// Layers learn on every device there is.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/backend.h"
#include "frontend/lockstep.h"

namespace lockstep {
namespace {

class Layers : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Layers, testing::Values("reference", "vulkan"), [](const auto& info) { return std::string(info.param); });

std::vector<float> waves(size_t count, double phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(phase + 0.7 * static_cast<double>(i)));
  return values;
}

/// Trains on one batch and expects a loss well below the first one.
template <class Model>
void expectLearns(const char* device, std::vector<int64_t> x_shape, std::vector<int64_t> y_shape,
                  const std::function<Tensor(const Model&, Tensor)>& predict) {
  const TensorType x_type{DType::F32, Shape(x_shape)}, y_type{DType::F32, Shape(y_shape)};
  auto trainer = compile<Model>({.inputs = {{"x", x_type}, {"y", y_type}},
                                 .loss = [&](const Model& m, const Inputs& in) { return mean(square(predict(m, in["x"]) - in["y"])); },
                                 .optimizer = adam({.lr = 0.02}),
                                 .seed = 5,
                                 .device = device});
  std::vector<float> x = waves(static_cast<size_t>(x_type.shape.elementCount()), 0);
  std::vector<float> y = waves(static_cast<size_t>(y_type.shape.elementCount()), 2);
  float first = trainer.step({{"x", x}, {"y", y}}).loss, last = first;
  for (int step = 0; step < 30; ++step) last = trainer.step({{"x", x}, {"y", y}}).loss;
  EXPECT_LT(last, 0.7f * first);
}

TEST_P(Layers, convolutions_with_batch_norm_learn) {
  struct Model : Module {
    nn::Conv2d c1{*this, "c1", 2, 4, 3, {.padding = 1, .bias = false, .init = init::kaiming_normal()}};
    nn::BatchNorm bn{*this, "bn", 4};
    nn::ConvTranspose2d c2{*this, "c2", 4, 1, 2, {.stride = 2, .init = init::kaiming_normal()}};
    nn::GroupNorm gn{*this, "gn", 2, 4};
  };
  expectLearns<Model>(GetParam(), {2, 2, 4, 4}, {2, 1, 8, 8}, [](const Model& m, Tensor x) { return m.c2(m.gn(relu(m.bn(m.c1(x))))); });
}

TEST_P(Layers, recurrent_layers_learn) {
  struct Model : Module {
    nn::LSTM lstm{*this, "lstm", 3, 8};
    nn::GRU gru{*this, "gru", 8, 8};
    nn::Linear head{*this, "head", 8, 1, {.init = init::xavier_uniform()}};
  };
  expectLearns<Model>(GetParam(), {2, 4, 3}, {2, 4, 1}, [](const Model& m, Tensor x) { return m.head(m.gru(m.lstm(x).y).y); });
}

TEST_P(Layers, transformer_blocks_learn) {
  struct Model : Module {
    nn::TransformerBlock plain{*this, "plain", 8, 2, {.attention = {.causal = true, .init = init::xavier_normal()}}};
    nn::TransformerBlock gated{*this,
                               "gated",
                               8,
                               4,
                               {.hidden = 12,
                                .rms_norm = true,
                                .dropout = 0.1,
                                .attention = {.kv_heads = 2, .causal = true, .rope = RopeOptions{}},
                                .feed_forward = {.activation = nn::Activation::Silu, .gated = true}}};
    nn::Conv1d head{*this, "head", 8, 1, 1, {.init = init::xavier_uniform()}};
  };
  expectLearns<Model>(GetParam(), {2, 5, 8}, {2, 5, 1},
                      [](const Model& m, Tensor x) { return swap_axes(m.head(swap_axes(m.gated(m.plain(x)), 1, 2)), 1, 2); });
}

struct Attending : Module {
  nn::Linear q{*this, "q", 4, 4, {.init = init::xavier_normal()}};
};

TEST_P(Layers, keys_behind_an_infinite_mask_count_for_nothing) {
  auto attend = [](const Attending& m, Tensor x, Tensor mask) {
    return scaled_dot_product_attention(reshape(m.q(x), {1, 3, 4}), reshape(x, {1, 3, 4}), reshape(x, {1, 3, 4}), {.mask = mask});
  };
  auto trainer =
      compile<Attending>({.inputs = {{"x", f32(3, 4)}, {"mask", f32(3, 3)}},
                          .loss = [=](const Attending& m, const Inputs& in) { return mean(square(attend(m, in["x"], in["mask"]))); },
                          .seed = 3,
                          .device = GetParam()});
  Forward forward = trainer.attach({.inputs = {{"x", f32(3, 4)}, {"mask", f32(3, 3)}},
                                    .forward = [=](const Attending& m, const Inputs& in) { return attend(m, in["x"], in["mask"]); }});
  const std::vector<float> x = waves(12, 0);
  std::vector<float> mask{0, -INFINITY, -INFINITY, -INFINITY, 0, 0.5f, -INFINITY, -INFINITY, 0};
  const HostTensor infinite = forward.run({{"x", x}, {"mask", mask}}).output;
  for (size_t i : {0u, 1u, 2u, 3u, 8u, 9u, 10u, 11u}) EXPECT_NEAR(infinite.floats()[i], x[i], 1e-6) << i;  // only themselves
  EXPECT_TRUE(trainer.step({{"x", x}, {"mask", mask}}).completed());
  const ParameterValues parameters = trainer.download();
  for (float w : parameters.at("q.W")) EXPECT_TRUE(std::isfinite(w));
}

struct Normed : Module {
  nn::BatchNorm bn{*this, "bn", 2};
};

TEST_P(Layers, batch_norm_tracks_the_data_for_its_forwards) {
  auto trainer = compile<Normed>({.inputs = {{"x", f32(4, 2)}},
                                  .loss = [](const Normed& m, const Inputs& in) { return mean(square(m.bn(in["x"]))); },
                                  .optimizer = sgd({.lr = 0}),
                                  .device = GetParam()});
  Forward forward =
      trainer.attach({.inputs = {{"x", f32(1, 2)}}, .forward = [](const Normed& m, const Inputs& in) { return m.bn(in["x"]); }});
  const std::vector<float> x{1, 10, 2, 20, 3, 30, 4, 40}, one{5, 5};
  double mean = 0, variance = 1;
  for (int step = 0; step < 3; ++step) {
    trainer.step({{"x", x}});
    mean = 0.9 * mean + 0.1 * 2.5;
    variance = 0.9 * variance + 0.1 * 5.0 / 3;
  }
  EXPECT_NEAR(trainer.download().at("bn.running_mean")[0], mean, 1e-6);
  EXPECT_NEAR(trainer.download().at("bn.running_var")[0], variance, 1e-6);
  EXPECT_NEAR(forward.run({{"x", one}}).output.floats()[0], (5 - mean) / std::sqrt(variance + 1e-5), 1e-5);
}

TEST_P(Layers, state_space_mixers_learn) {
  struct First : Module {
    nn::Mamba1 mixer{*this, "mixer", 8, {.states = 4, .chunk = 4, .init = init::randn(0.3)}};
  };
  expectLearns<First>(GetParam(), {2, 10, 8}, {2, 10, 8}, [](const First& m, Tensor x) { return m.mixer(x); });
  struct Second : Module {
    nn::Mamba2 mixer{*this, "mixer", 8, {.states = 4, .head_width = 4, .groups = 2, .chunk = 4, .init = init::randn(0.3)}};
  };
  expectLearns<Second>(GetParam(), {2, 10, 8}, {2, 10, 8}, [](const Second& m, Tensor x) { return m.mixer(x); });
  struct Third : Module {
    nn::Mamba3 mixer{*this, "mixer", 8, {.states = 4, .head_width = 4, .groups = 2, .rank = 2, .chunk = 4, .init = init::randn(0.3)}};
  };
  expectLearns<Third>(GetParam(), {2, 10, 8}, {2, 10, 8}, [](const Third& m, Tensor x) { return m.mixer(x); });
}

}  // namespace
}  // namespace lockstep
