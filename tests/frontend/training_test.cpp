// SPDX-License-Identifier: Apache-2.0
// Optimizers, parameter groups and buffers in training steps on every device there is.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/backend.h"
#include "frontend/io/safetensors.h"
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
  auto trainer = compile<Linear3>(specFor(GetParam(), adam({.lr = 0.1, .eps = 0.05, .corrected_eps = true}, {.clip_grad_value = 0.5})));
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
  auto trainer = compile<Linear3>(specFor(GetParam(), lion({.lr = 0.01, .weight_decay = 0.5}, {.groups = {{.filter = named("c")}}})));
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
      sgd({.lr = 0.1, .momentum = 0.5}, {.groups = {{.filter = named("b"), .frozen = true}, {.filter = named("c"), .lr_factor = 2}}});
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
  auto trainer = compile<Linear3>(specFor(GetParam(), adamw({.lr = 0.1, .weight_decay = 0.1}, {.clip_grad_norm = 1})));
  auto spared = compile<Linear3>(specFor(GetParam(), adamw({.lr = 0.1, .weight_decay = 0.1}, {.clip_grad_norm = 1})));
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
  auto trainer = compile<Linear3>(specFor(GetParam(), sgd({}, {.skip_non_finite = false})));
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

TEST_P(Training, buffers_go_up_and_down_with_the_parameters) {
  auto trainer = compile<Linear3>(specFor(GetParam(), sgd()));
  trainer.step(Data(1).batch());
  ParameterValues values = trainer.download();
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values.at("calls"), std::vector<float>{1});
  values["calls"] = {41};
  trainer.upload(values);
  trainer.step(Data(2).batch());
  EXPECT_EQ(trainer.download().at("calls"), std::vector<float>{42});
  auto code = [&](const ParameterValues& wrong) {
    try {
      trainer.upload(wrong);
    } catch (const Error& error) {
      return error.code();
    }
    return std::string();
  };
  ParameterValues wrong = values;
  wrong["calls"] = {1, 2};
  EXPECT_EQ(code(wrong), "parameters.length");
  wrong.erase("calls");
  EXPECT_EQ(code(wrong), "parameters.missing");
  values["other"] = {1};
  EXPECT_EQ(code(values), "parameters.unknown");
  EXPECT_EQ(trainer.download().at("calls"), std::vector<float>{42});
  trainer.reset();
  EXPECT_EQ(trainer.download().at("calls"), std::vector<float>{0});
  EXPECT_EQ(trainer.download().at("sums"), std::vector<float>(64, 10.0f));
}

TEST_P(Training, averages_follow_the_parameters) {
  OptimizerSpec optimizer = sgd({.lr = 0.1}, {.ema_decay = 0.75});
  optimizer.groups = {{.filter = named("b"), .frozen = true}};
  auto trainer = compile<Linear3>(specFor(GetParam(), optimizer));
  Forward now = trainer.attach({.forward = [](const Linear3& m, const Inputs&) { return m.a * 1.0; }});
  Forward averaged = trainer.attach({.forward = [](const Linear3& m, const Inputs&) { return m.a * 1.0; }, .use_ema = true});
  EXPECT_EQ(trainer.download_ema(), trainer.download());
  double p = 1, average = 1;
  for (int t = 1; t <= 3; ++t) {
    trainer.step(Data(t).batch());
    p -= 0.1 * gradientOf(0, 9, t);
    average = 0.75 * average + 0.25 * p;
  }
  EXPECT_NEAR(trainer.download().at("a")[9], p, 1e-6);
  EXPECT_NEAR(trainer.download_ema().at("a")[9], average, 1e-6);
  EXPECT_EQ(trainer.download_ema().at("b"), std::vector<float>(5, 2.0f));
  EXPECT_EQ(now.run({}).output.floats()[9], trainer.download().at("a")[9]);
  EXPECT_EQ(averaged.run({}).output.floats()[9], trainer.download_ema().at("a")[9]);
  trainer.upload(trainer.download());
  EXPECT_EQ(trainer.download_ema(), trainer.download());
}

TEST_P(Training, checkpoints_have_averages_moments_of_some_and_buffers) {
  OptimizerSpec optimizer = adam({.lr = 0.1}, {.groups = {{.filter = named("b"), .frozen = true}}, .ema_decay = 0.9});
  auto trainer = compile<Linear3>(specFor(GetParam(), optimizer)), other = compile<Linear3>(specFor(GetParam(), optimizer));
  trainer.step(Data(1).batch());
  other.restore(trainer.checkpoint());
  trainer.step(Data(2).batch());
  other.step(Data(2).batch());
  EXPECT_EQ(other.download(), trainer.download());
  EXPECT_EQ(other.download_ema(), trainer.download_ema());
  EXPECT_EQ(other.download().at("calls"), std::vector<float>{2});
  auto free = compile<Linear3>(specFor(GetParam(), adam({.lr = 0.1}, {.ema_decay = 0.9})));
  EXPECT_THROW(free.restore(trainer.checkpoint()), Error);
}

struct Counters : Module {
  Parameter w{*this, "w", {1}, init::ones()};
  Buffer steps{*this, "steps", {2}, -16777216, DType::I32};
  Buffer left{*this, "left", {}, 4294967295.0, DType::U32};
};

TEST_P(Training, integer_buffers_count_beyond_what_floats_hold) {
  auto trainer = compile<Counters>({.inputs = {{"x", f32(1)}},
                                    .loss =
                                        [](const Counters& m, const Inputs& in) {
                                          m.steps.update(m.steps - 1.0);
                                          m.left.update(m.left - 1.0);
                                          return sum(m.w * in["x"]);
                                        },
                                    .device = GetParam()});
  const std::vector<float> x{1}, bad{NAN};
  EXPECT_TRUE(trainer.step({{"x", x}}).completed());
  EXPECT_FALSE(trainer.step({{"x", bad}}).completed());  // changes nothing
  EXPECT_TRUE(trainer.step({{"x", x}}).completed());
  EXPECT_TRUE(trainer.step({{"x", x}}).completed());
  const io::TensorFile file = trainer.checkpoint();
  EXPECT_EQ(file.tensors.at("buffer.steps"), io::Array::fromInts({2}, std::vector<int32_t>{-16777219, -16777219}));
  EXPECT_EQ(file.tensors.at("buffer.left").at(0), 4294967292.0);
  trainer.reset();
  EXPECT_EQ(trainer.download().at("steps"), (std::vector<float>{-16777216, -16777216}));
  trainer.restore(file);
  EXPECT_EQ(trainer.checkpoint(), file);
}

struct Mlp : Module {
  nn::Linear l1{*this, "l1", 2, 32, {.init = init::randn(0.5)}}, l2{*this, "l2", 32, 1, {.init = init::randn(0.5)}};
  Buffer runs{*this, "runs", {}};
};
constexpr size_t kRows = 24;
CompileSpec<Mlp> mlpSpec(const std::string& device, int64_t accumulate) {
  auto rows = static_cast<int64_t>(kRows) / accumulate;
  return {.inputs = {{"x", f32(rows, 2)}, {"y", f32(rows, 1)}, {"scale", f32()}},
          .loss =
              [](const Mlp& m, const Inputs& in) {
                if (is_training()) m.runs.update(m.runs + 1.0);
                return mean(square(capture("y", m.l2(tanh(m.l1(in["x"])))) - in["y"])) * in["scale"];
              },
          .optimizer = adamw({.lr = 0.05, .weight_decay = 0.1}, {.clip_grad_norm = 0.5}),
          .seed = 3,
          .device = device,
          .accumulate = accumulate};
}
struct Rows {
  std::vector<float> x = std::vector<float>(2 * kRows), y = std::vector<float>(kRows), scale{2};
  explicit Rows(int step) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(static_cast<double>(i * i) + step));
    for (size_t i = 0; i < y.size(); ++i) y[i] = x[2 * i] * x[2 * i + 1];
  }
  [[nodiscard]] Batch batch() const { return {{"x", x}, {"y", y}, {"scale", scale}}; }
};

TEST_P(Training, accumulated_batch_equals_the_whole_batch) {
  auto whole = compile<Mlp>(mlpSpec(GetParam(), 1)), parts = compile<Mlp>(mlpSpec(GetParam(), 4));
  uint64_t before = parts.run_facts().submissions;
  for (int step = 1; step <= 5; ++step) {
    StepResult a = whole.step(Rows(step).batch()), b = parts.step(Rows(step).batch());
    EXPECT_EQ(b.step, static_cast<uint64_t>(step));
    EXPECT_NEAR(a.loss, b.loss, 1e-6 * a.loss) << step;
  }
  EXPECT_EQ(parts.run_facts().submissions, before + 5);
  EXPECT_EQ(parts.run_facts().steps, 20u);
  EXPECT_EQ(parts.download().at("runs"), std::vector<float>{20});
  EXPECT_EQ(parts.step_count(), 5u);
  for (const char* name : {"l1.W", "l1.b", "l2.W"}) {
    std::vector<float> a = whole.download().at(name), b = parts.download().at(name);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5) << name << " " << i;
  }
}

TEST_P(Training, several_accumulated_steps_are_one_submission) {
  auto one = compile<Mlp>(mlpSpec(GetParam(), 3)), many = compile<Mlp>(mlpSpec(GetParam(), 3));
  std::vector<float> losses;
  for (int step = 1; step <= 3; ++step) losses.push_back(one.step(Rows(step).batch()).loss);
  Rows rows(0);
  std::vector<StepResult> results = many.steps(3,
                                               [&](size_t i) {
                                                 rows = Rows(static_cast<int>(i) + 1);
                                                 return rows.batch();
                                               },
                                               {.captures = true});
  EXPECT_EQ(many.run_facts().submissions, 1u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i].loss, losses[i]);
  EXPECT_EQ(results[2].captures.get("y").shape(), (Shape{8, 1}));
  EXPECT_EQ(one.download(), many.download());
}

TEST_P(Training, run_that_is_not_finite_spoils_its_step_only) {
  auto trainer = compile<Mlp>(mlpSpec(GetParam(), 4)), spared = compile<Mlp>(mlpSpec(GetParam(), 4));
  Rows bad(9);
  bad.x[3] = std::nanf("");
  ParameterValues before = trainer.download();
  StepResult result = trainer.step(bad.batch());
  EXPECT_FALSE(std::isfinite(result.loss));
  EXPECT_TRUE(result.failure.has_value());
  ParameterValues after = trainer.download();
  // Buffers follow the runs that were finite.
  EXPECT_EQ(after.at("runs"), std::vector<float>{3});
  after["runs"] = before["runs"];
  EXPECT_EQ(after, before);
  trainer.reset();
  trainer.step(Rows(1).batch());
  spared.step(Rows(1).batch());
  EXPECT_EQ(trainer.download(), spared.download());
}

TEST_P(Training, dynamic_batches_are_accumulated_too) {
  auto dynamicSpec = [](int64_t accumulate) {
    CompileSpec<Mlp> spec = mlpSpec(GetParam(), accumulate);
    spec.inputs[0].type = f32(dynamic, 2);
    spec.inputs[1].type = f32(dynamic, 1);
    return spec;
  };
  auto whole = compile<Mlp>(dynamicSpec(1)), parts = compile<Mlp>(dynamicSpec(4));
  // All rows, then the first half of them, then all again: two programs that share the sum of gradients.
  for (int step = 1; step <= 3; ++step) {
    Rows rows(step);
    if (step == 2) rows.x.resize(kRows), rows.y.resize(kRows / 2);
    const float expected = whole.step(rows.batch()).loss;
    EXPECT_NEAR(parts.step(rows.batch()).loss, expected, 1e-6 * expected) << step;
  }
  EXPECT_EQ(parts.run_facts().compilations, 2u);
  EXPECT_EQ(parts.run_facts().steps, 12u);
  const std::vector<float> a = whole.download().at("l1.W"), b = parts.download().at("l1.W");
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5) << i;
  Rows uneven(1);
  uneven.x.resize(20), uneven.y.resize(10);
  try {
    parts.step(uneven.batch());
    ADD_FAILURE() << "ten rows were cut into four runs";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "batch.length");
  }
  EXPECT_EQ(parts.step_count(), 3u);
}

TEST(TrainingErrors, accumulation_needs_a_count) {
  auto code = [](CompileSpec<Mlp> spec) {
    try {
      (void)compile<Mlp>(std::move(spec));
    } catch (const Error& error) {
      return error.code();
    }
    return std::string();
  };
  CompileSpec<Mlp> spec = mlpSpec("reference", 1);
  spec.accumulate = 0;
  EXPECT_EQ(code(spec), "compile.accumulate");
}

TEST(TrainingErrors, averages_are_there_when_they_were_asked_for) {
  auto trainer = compile<Linear3>(specFor("reference", sgd()));
  EXPECT_THROW((void)trainer.download_ema(), Error);
  EXPECT_THROW((void)trainer.attach({.forward = [](const Linear3& m, const Inputs&) { return m.a * 1.0; }, .use_ema = true}), Error);
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
