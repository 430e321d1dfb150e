// SPDX-License-Identifier: Apache-2.0
// Optimizers, parameter groups and buffers in training steps on every device there is.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/backend.h"
#include "frontend/lockstep.h"

namespace lockstep {
namespace {

/// The loss is the sum of all p x, so that the gradient of a parameter is its input.
struct Linear3 : Module {
  Parameter a{*this, "a", {70}, init::constant(1)}, b{*this, "b", {5}, init::constant(2)}, c{*this, "c", {64}, init::constant(3)};
  Buffer calls{*this, "calls", {}};
  Buffer sums{*this, "sums", {64}, 10};
};

CompileSpec<Linear3> specFor(const std::string& device, const OptimizerSpec& optimizer) {
  return {.inputs = {{"x", f32(70)}, {"y", f32(5)}, {"z", f32(64)}},
          .loss =
              [](const Linear3& m, const Inputs& in) {
                m.calls.update(m.calls + 1.0);
                m.sums.update(m.sums + in["z"]);
                return sum(m.a * in["x"]) + sum(m.b * in["y"]) + sum(m.c * in["z"]);
              },
          .optimizer = optimizer,
          .device = device};
}

double gradientOf(size_t parameter, size_t element, int step) {
  return std::sin(1 + 2 * static_cast<double>(parameter) + 0.1 * static_cast<double>(element) + step);
}

struct Data {
  std::vector<std::vector<float>> values{std::vector<float>(70), std::vector<float>(5), std::vector<float>(64)};
  explicit Data(int step) {
    for (size_t p = 0; p < 3; ++p) {
      for (size_t i = 0; i < values[p].size(); ++i) values[p][i] = static_cast<float>(gradientOf(p, i, step));
    }
  }
  [[nodiscard]] Batch batch() const { return {{"x", values[0]}, {"y", values[1]}, {"z", values[2]}}; }
};

NameFilter named(std::string wanted) {
  return [wanted](const std::string& name) { return name == wanted; };
}

class Training : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!chooseDevice(GetParam()).ok()) GTEST_SKIP() << "no usable device " << GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Training, testing::Values("reference", "vulkan"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Training, adam_with_corrected_epsilon_follows_its_formula) {
  auto trainer = compile<Linear3>(specFor(GetParam(), adam({.lr = 0.1, .eps = 0.05, .corrected_eps = true, .clip_grad_value = 0.5})));
  double p = 1, m = 0, v = 0;
  for (int t = 1; t <= 3; ++t) {
    trainer.step(Data(t).batch());
    double g = std::clamp(gradientOf(0, 66, t), -0.5, 0.5);
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 0.1 * m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 0.05);
    EXPECT_NEAR(trainer.download().at("a")[66], p, 3e-6) << "step " << t;
  }
}

TEST_P(Training, lion_follows_its_formula) {
  auto trainer = compile<Linear3>(specFor(GetParam(), lion({.lr = 0.01, .weight_decay = 0.5, .groups = {{.filter = named("c")}}})));
  double p = 1, m = 0;
  for (int t = 1; t <= 4; ++t) {
    trainer.step(Data(t).batch());
    double g = gradientOf(0, 3, t), direction = 0.9 * m + 0.1 * g > 0 ? 1 : -1;
    p -= 0.01 * direction;  // constants do not decay
    m = 0.99 * m + 0.01 * g;
    EXPECT_NEAR(trainer.download().at("a")[3], p, 1e-6) << "step " << t;
  }
}

TEST_P(Training, frozen_parameters_stay_and_the_others_move) {
  OptimizerSpec free = sgd({.lr = 0.1, .momentum = 0.5});
  OptimizerSpec frozen =
      sgd({.lr = 0.1, .momentum = 0.5, .groups = {{.filter = named("b"), .frozen = true}, {.filter = named("c"), .lr_factor = 2}}});
  auto all = compile<Linear3>(specFor(GetParam(), free)), some = compile<Linear3>(specFor(GetParam(), frozen));
  double c = 3, velocity = 0;
  for (int t = 1; t <= 3; ++t) {
    all.step(Data(t).batch());
    some.step(Data(t).batch());
    velocity = 0.5 * velocity + gradientOf(2, 63, t);
    c -= 0.2 * velocity;
  }
  EXPECT_EQ(some.download().at("b"), std::vector<float>(5, 2.0f));
  EXPECT_EQ(some.download().at("a"), all.download().at("a"));
  EXPECT_NEAR(some.download().at("c")[63], c, 2e-6);
  EXPECT_LT(some.facts().planned_bytes, all.facts().planned_bytes);
}

TEST_P(Training, loss_that_is_not_finite_changes_nothing) {
  auto trainer = compile<Linear3>(specFor(GetParam(), adamw({.lr = 0.1, .weight_decay = 0.1, .clip_grad_norm = 1})));
  auto spared = compile<Linear3>(specFor(GetParam(), adamw({.lr = 0.1, .weight_decay = 0.1, .clip_grad_norm = 1})));
  Forward calls = trainer.attach({.forward = [](const Linear3& m, const Inputs&) { return m.calls + sum(m.sums); }});
  trainer.step(Data(1).batch());
  spared.step(Data(1).batch());
  const ParameterValues before = trainer.download();
  const float count = calls.run({}).output.floats()[0];
  for (float bad : {std::nanf(""), INFINITY}) {
    Data data(2);
    data.values[0][7] = bad;
    EXPECT_FALSE(std::isfinite(trainer.step(data.batch()).loss));
    EXPECT_EQ(trainer.download(), before);
    EXPECT_EQ(calls.run({}).output.floats()[0], count);
  }
  // Moments are as they were too; only the count of steps went on, so a rate without bias correction must agree.
  auto plain = compile<Linear3>(specFor(GetParam(), sgd({.lr = 0.1, .momentum = 0.9})));
  auto plain_spared = compile<Linear3>(specFor(GetParam(), sgd({.lr = 0.1, .momentum = 0.9})));
  for (int t = 1; t <= 3; ++t) {
    plain.step(Data(t).batch());
    plain_spared.step(Data(t).batch());
    Data data(t);
    data.values[2][0] = std::nanf("");
    plain.step(data.batch());
  }
  EXPECT_EQ(plain.download(), plain_spared.download());
}

TEST_P(Training, guard_can_be_left_out) {
  auto trainer = compile<Linear3>(specFor(GetParam(), sgd({.skip_non_finite = false})));
  Data data(1);
  data.values[0][7] = std::nanf("");
  trainer.step(data.batch());
  EXPECT_TRUE(std::isnan(trainer.download().at("a")[7]));
}

TEST_P(Training, buffers_follow_steps_and_forwards_see_them) {
  auto trainer = compile<Linear3>(specFor(GetParam(), sgd()));
  Forward calls = trainer.attach({.forward = [](const Linear3& m, const Inputs&) { return m.calls * 1.0; }});
  Forward sums = trainer.attach({.forward = [](const Linear3& m, const Inputs&) { return m.sums * 1.0; }});
  EXPECT_EQ(calls.run({}).output.floats()[0], 0);
  EXPECT_EQ(sums.run({}).output.floats()[5], 10);
  double sum = 10;
  for (int t = 1; t <= 3; ++t) {
    trainer.step(Data(t).batch());
    sum += gradientOf(2, 5, t);
    EXPECT_EQ(calls.run({}).output.floats()[0], static_cast<float>(t));
    EXPECT_NEAR(sums.run({}).output.floats()[5], sum, 1e-5);
  }
}

TEST(TrainingErrors, input_with_the_name_of_a_parameter_is_rejected) {
  CompileSpec<Linear3> spec = specFor("reference", sgd());
  spec.inputs.push_back({"b", f32()});
  try {
    (void)compile<Linear3>(spec);
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "compile.input");
  }
}

TEST(TrainingErrors, buffer_updates_belong_into_the_loss) {
  auto trainer = compile<Linear3>(specFor("reference", sgd()));
  try {
    (void)trainer.attach({.forward = [](const Linear3& m, const Inputs&) {
      m.calls.update(m.calls + 1.0);
      return m.calls * 1.0;
    }});
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "buffer.training");
  }
}

}  // namespace
}  // namespace lockstep
