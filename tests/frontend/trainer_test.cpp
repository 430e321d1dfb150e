// SPDX-License-Identifier: Apache-2.0
// Trainer and Forward on every device there is: the reference, and a Vulkan device if one can be used.
#include "frontend/train/trainer.h"

#include <filesystem>

#include "frontend/io/safetensors.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

class Training : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Training, testing::Values("reference", "vulkan"), deviceName);

TEST_P(Training, training_lowers_the_loss) {
  auto trainer = make();
  float first = trainer.step(batchOf(dataOf(0))).loss, last = first;
  for (size_t step = 1; step < 150; ++step) last = trainer.step(batchOf(dataOf(step))).loss;
  EXPECT_LT(last, 0.05f * first);
  EXPECT_EQ(trainer.step_count(), 150u);
}

TEST_P(Training, steps_in_one_submission_equal_single_steps) {
  auto one = make(), many = make();
  std::vector<float> losses;
  Data data;
  auto next = [&](size_t i) {
    data = dataOf(i);
    return batchOf(data);
  };
  for (size_t step = 0; step < 6; ++step) losses.push_back(one.step(next(step)).loss);
  uint64_t before = many.run_facts().submissions;
  std::vector<StepResult> results = many.steps(6, next);
  EXPECT_EQ(many.run_facts().submissions, before + 1);
  ASSERT_EQ(results.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(results[i].loss, losses[i]) << i;
    EXPECT_EQ(results[i].step, i + 1);
  }
  EXPECT_EQ(one.download(), many.download());
}

TEST_P(Training, tickets_are_waited_for_once) {
  auto trainer = make();
  Data data = dataOf(0);
  uint64_t a = trainer.enqueue(2, [&](size_t) { return batchOf(data); });
  uint64_t b = trainer.enqueue(1, [&](size_t) { return batchOf(data); });
  EXPECT_EQ(trainer.wait(a).size(), 2u);
  EXPECT_EQ(trainer.wait(b).front().step, 3u);
  EXPECT_EQ(caught([&] { trainer.wait(a); }).code(), "steps.ticket");
  EXPECT_EQ(caught([&] { trainer.steps(0, [&](size_t) { return batchOf(data); }); }).code(), "steps.count");
}

TEST_P(Training, nothing_is_allocated_after_the_first_step) {
  auto trainer = make();
  Data data = dataOf(0);
  trainer.step(batchOf(data));
  uint64_t allocations = trainer.run_facts().device_allocations;
  for (int i = 0; i < 20; ++i) trainer.step(batchOf(data));
  EXPECT_EQ(trainer.run_facts().device_allocations, allocations);
}

TEST_P(Training, bad_batches_are_rejected_before_anything_runs) {
  auto trainer = make();
  Data data = dataOf(0);
  std::vector<float> shorter(kBatch - 1);
  std::vector<int32_t> ints(kBatch);
  auto code = [&](const Batch& batch) { return caught([&] { trainer.step(batch); }).code(); };
  EXPECT_EQ(code({{"x", data.x}}), "batch.missing");
  EXPECT_EQ(code({{"x", data.x}, {"y", data.y}, {"z", data.y}}), "batch.unknown");
  EXPECT_EQ(code({{"x", data.x}, {"y", data.y}, {"y", data.y}}), "batch.twice");
  EXPECT_EQ(code({{"x", data.x}, {"y", shorter}}), "batch.length");
  EXPECT_EQ(code({{"x", data.x}, {"y", ints}}), "batch.type");
  EXPECT_EQ(trainer.step_count(), 0u);
  EXPECT_EQ(trainer.run_facts().steps, 0u);
}

TEST_P(Training, parameters_go_up_and_down_strictly) {
  auto trainer = make();
  ParameterValues values = trainer.download();
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values.at("l1.W").size(), 16u);
  EXPECT_EQ(values.at("l1.b"), std::vector<float>(16, 0.0f));
  ParameterValues changed = values;
  for (auto& [name, data] : changed) {
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i) * 0.25f;
  }
  trainer.upload(changed);
  EXPECT_EQ(trainer.download(), changed);
  auto code = [&](ParameterValues bad) { return caught([&] { trainer.upload(bad); }).code(); };
  ParameterValues bad = values;
  bad["l3.W"] = {1};
  EXPECT_EQ(code(bad), "parameters.unknown");
  bad = values;
  bad.erase("l2.b");
  EXPECT_EQ(code(bad), "parameters.missing");
  bad = values;
  bad["l2.b"].push_back(1);
  EXPECT_EQ(code(bad), "parameters.length");
  EXPECT_EQ(trainer.download(), changed);
}

TEST_P(Training, forward_shares_the_parameters) {
  auto trainer = make();
  Forward forward = trainer.attach({.inputs = {{"x", f32(3, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }});
  std::vector<float> x{-0.5f, 0.25f, 1.0f};
  ForwardResult before = forward.run({{"x", x}}, {.captures = true});
  auto expected = [&](float input) {
    ParameterValues p = trainer.download();
    double y = p["l2.b"][0];
    for (size_t i = 0; i < 16; ++i) y += std::max(0.0f, input * p["l1.W"][i] + p["l1.b"][i]) * p["l2.W"][i];
    return y;
  };
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(before.output.floats()[i], expected(x[i]), 1e-5);
  EXPECT_TRUE(before.captures.has("hidden"));
  for (size_t step = 0; step < 20; ++step) trainer.step(batchOf(dataOf(step)));
  ForwardResult after = forward.run({{"x", x}});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(after.output.floats()[i], expected(x[i]), 1e-5);
  EXPECT_NE(before.output.floats()[2], after.output.floats()[2]);
  EXPECT_EQ(caught([&] { (void)before.output.ints(); }).code(), "value.type");
}

TEST_P(Training, forward_leaves_out_the_passes_of_its_trainer) {
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.disable = {"simplify"};
  auto trainer = compile<Mlp>(spec);
  Forward forward = trainer.attach(
      {.inputs = {{"x", f32(1, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }, .disable = {"kernels"}});
  for (const std::string& pass : forward.facts().passes) {
    EXPECT_FALSE(pass.starts_with("simplify") || pass.starts_with("kernels")) << pass;
  }
  EXPECT_FALSE(forward.facts().passes.empty());
}

TEST_P(Training, forward_outlives_its_trainer) {
  std::optional<Forward> forward;
  {
    auto trainer = make();
    forward = trainer.attach({.inputs = {{"x", f32(1, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }});
  }
  std::vector<float> x{0.5f};
  EXPECT_TRUE(std::isfinite(forward->run({{"x", x}}).output.floats()[0]));
}

TEST_P(Training, rate_zero_freezes_and_schedules_begin_at_the_next_step) {
  auto trainer = make();
  trainer.step(batchOf(dataOf(0)));
  trainer.set_lr(0.0);
  ParameterValues before = trainer.download();
  trainer.step(batchOf(dataOf(1)));
  EXPECT_EQ(trainer.download(), before);
  trainer.set_lr(schedule::linear({.peak = 1, .final = 0, .steps = 10}));
  EXPECT_DOUBLE_EQ(trainer.lr(), 0.9);
  EXPECT_EQ(trainer.step_count(), 2u);
  EXPECT_EQ(caught([&] { trainer.set_lr(NAN); }).code(), "schedule.number");
  EXPECT_EQ(caught([&] { trainer.set_lr(-5); }).code(), "schedule.number");
  EXPECT_DOUBLE_EQ(trainer.lr(), 0.9);
}

TEST_P(Training, rate_that_is_none_stops_before_the_step) {
  auto trainer = make();
  trainer.set_lr(schedule::staircase({.peak = 1e-3, .every = 1, .gamma = 1e300}));
  EXPECT_TRUE(trainer.step(batchOf(dataOf(0))).completed());
  const ParameterValues before = trainer.download();
  const Error error = caught([&] { trainer.step(batchOf(dataOf(1))); });
  EXPECT_EQ(error.code(), "schedule.number");
  EXPECT_NE(std::string(error.what()).find("of step 2"), std::string::npos) << error.what();
  EXPECT_EQ(trainer.step_count(), 1u);
  EXPECT_EQ(trainer.download(), before);
  // An optimizer that was made by hand is looked at as well.
  OptimizerSpec by_hand;
  by_hand.lr = -1;
  EXPECT_EQ(caught([&] { trainer.replace_model({}, {.optimizer = by_hand}); }).code(), "schedule.number");
}

struct Scalar : Module {
  Parameter w{*this, "w", {1}, init::literal({2})};
  Parameter unused{*this, "unused", {1}, init::literal({8})};
};

/// Trains w in mean((w x - y)²) and gives w after each step.
std::vector<double> track(const char* device, const OptimizerSpec& optimizer, double* unused = nullptr) {
  auto trainer = compile<Scalar>({.inputs = {{"x", f32(2)}, {"y", f32(2)}},
                                  .loss = [](const Scalar& m, const Inputs& in) { return mean(square(m.w * in["x"] - in["y"])); },
                                  .optimizer = optimizer,
                                  .seed = 1,
                                  .device = device});
  std::vector<float> x{1, 2}, y{1, -1};
  std::vector<double> values;
  for (int step = 0; step < 4; ++step) {
    trainer.step({{"x", x}, {"y", y}});
    values.push_back(trainer.download().at("w")[0]);
  }
  if (unused != nullptr) *unused = trainer.download().at("unused")[0];
  return values;
}
double gradientAt(double w) { return ((w * 1 - 1) * 1 + (w * 2 + 1) * 2); }

TEST_P(Training, adamw_follows_its_formula) {
  constexpr double kRate = 0.1, kDecay = 0.5, kClip = 2;
  double w = 2, m = 0, v = 0, unused = 0;
  std::vector<double> got = track(GetParam(), adamw({.lr = kRate, .weight_decay = kDecay}, {.clip_grad_norm = kClip}), &unused);
  for (int t = 1; t <= 4; ++t) {
    double g = gradientAt(w);
    g *= std::min(1.0, kClip / (std::abs(g) + 1e-6));
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    double rate = kRate * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    w = (1 - kRate * kDecay) * w - rate * m / (std::sqrt(v) + 1e-8);
    EXPECT_NEAR(got[static_cast<size_t>(t - 1)], w, 2e-6) << "step " << t;
  }
  EXPECT_NEAR(unused, 8 * std::pow(1 - kRate * kDecay, 4), 1e-5);
}

TEST_P(Training, sgd_with_nesterov_follows_its_formula) {
  constexpr double kRate = 0.01, kMomentum = 0.9, kDecay = 0.1;
  double w = 2, velocity = 0;
  std::vector<double> got = track(GetParam(), sgd({.lr = kRate, .momentum = kMomentum, .nesterov = true, .weight_decay = kDecay}));
  for (size_t t = 0; t < 4; ++t) {
    double g = gradientAt(w) + kDecay * w;
    velocity = kMomentum * velocity + g;
    w -= kRate * (g + kMomentum * velocity);
    EXPECT_NEAR(got[t], w, 2e-6) << "step " << t + 1;
  }
}

TEST_P(Training, weight_decay_of_a_group_is_before_the_parameters_flag) {
  double unused = 0;
  ParameterGroup group{.filter = [](const std::string& name) { return name == "unused"; }, .weight_decay = 0};
  track(GetParam(), adamw({.lr = 0.1, .weight_decay = 0.5}, {.groups = {group}}), &unused);
  EXPECT_EQ(unused, 8);
  group.weight_decay = 2;
  group.lr_factor = 0.5;
  track(GetParam(), adamw({.lr = 0.1, .weight_decay = 0.5}, {.groups = {group}}), &unused);
  EXPECT_NEAR(unused, 8 * std::pow(1 - 0.05 * 2, 4), 1e-5);
}

TEST_P(Training, set_lr_reaches_the_decay_too) {
  auto trainer = compile<Scalar>({.inputs = {{"x", f32(2)}},
                                  .loss = [](const Scalar& m, const Inputs& in) { return mean(m.w * in["x"]); },
                                  .optimizer = adamw({.lr = 0.5, .weight_decay = 0.5}),
                                  .device = GetParam()});
  trainer.set_lr(0.1);
  std::vector<float> x{1, 2};
  trainer.step({{"x", x}});
  EXPECT_NEAR(trainer.download().at("unused")[0], 8 * 0.95, 1e-5);
}

TEST_P(Training, results_have_the_rate_of_their_step) {
  auto trainer = make();
  const Schedule falling = schedule::linear({.peak = 0.1, .final = 0, .steps = 10, .start_step = 0});
  trainer.set_lr(falling);
  const Data data = dataOf(0);
  const uint64_t ticket = trainer.enqueue(3, [&](size_t) { return batchOf(data); });
  trainer.set_lr(0.5);  // for later steps
  const std::vector<StepResult> results = trainer.wait(ticket);
  for (const StepResult& result : results) EXPECT_EQ(result.lr, rateAt(falling, static_cast<int64_t>(result.step)));
  EXPECT_EQ(trainer.step(batchOf(data)).lr, 0.5);
}

TEST_P(Training, settings_are_those_of_a_checkpoint_and_the_facts_name_the_driver) {
  auto trainer = make();
  (void)trainer.step(batchOf(dataOf(0)));
  EXPECT_EQ(trainer.settings(), trainer.checkpoint().metadata);
  EXPECT_EQ(trainer.settings().at("lockstep.optimizer.name"), "adam");
  EXPECT_EQ(trainer.facts().driver, chooseDevice(GetParam())->info.driver);
  EXPECT_FALSE(trainer.facts().driver.empty());
}

TEST(Compile, same_seed_gives_the_same_parameters_and_a_random_one_is_told) {
  CompileSpec<Mlp> spec = specFor("reference");
  EXPECT_EQ(compile<Mlp>(spec).download(), compile<Mlp>(spec).download());
  spec.seed.reset();
  auto random = compile<Mlp>(spec);
  spec.seed = random.seed();
  EXPECT_EQ(compile<Mlp>(spec).download(), random.download());
}

TEST(Compile, mistakes_are_named) {
  auto code = [](auto change) {
    CompileSpec<Mlp> spec = specFor("reference");
    change(spec);
    return caught([&] { compile<Mlp>(spec); }).code();
  };
  EXPECT_EQ(code([](auto& spec) { spec.loss = [](const Mlp& m, const Inputs& in) { return square(m(in["x"]) - in["y"]); }; }),
            "compile.loss");
  EXPECT_EQ(code([](auto& spec) { spec.loss = [](const Mlp& m, const Inputs& in) { return mean(m(in["z"])); }; }), "inputs.name");
  EXPECT_EQ(code([](auto& spec) { spec.loss = nullptr; }), "compile.function");
  EXPECT_EQ(code([](auto& spec) { spec.inputs.push_back({"x", f32(1)}); }), "compile.input");
  EXPECT_EQ(code([](auto& spec) { spec.inputs.push_back({"", f32(1)}); }), "compile.input");
  EXPECT_EQ(code([](auto& spec) { spec.inputs.push_back({"step.rate", f32()}); }), "compile.input");
  EXPECT_EQ(code([](auto& spec) { spec.inputs[0].type.shape = Shape{0, 1}; }), "input.C1");
  EXPECT_EQ(code([](auto& spec) { spec.disable = {"nonsense"}; }), "pipeline.pass");
  CompileSpec<Mlp> spec = specFor("toaster");
  EXPECT_EQ(caught([&] { compile<Mlp>(spec); }).exitCode(), ExitCode::NoDevice);
}

TEST(Compile, loss_error_points_at_the_call) {
  Error error = caught([] {
    CompileSpec<Mlp> spec = specFor("reference");
    spec.loss = [](const Mlp&, const Inputs& in) { return in["x"]; };
    compile<Mlp>(spec);
  });
  EXPECT_TRUE(error.diagnostics().front().where.file.ends_with("trainer_test.cpp"));
}

TEST(Compile, dump_holds_every_stage_and_the_inputs) {
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "lockstep_trainer_dump";
  std::filesystem::remove_all(folder);
  CompileSpec<Mlp> spec = specFor("reference");
  spec.dump_ir = folder.string();
  auto trainer = compile<Mlp>(spec);
  Data data = dataOf(0);
  trainer.step(batchOf(data));
  EXPECT_TRUE(std::filesystem::exists(folder / "00-trace.graph"));
  io::TensorFile inputs = io::readSafetensors(folder / "inputs.safetensors").orThrow();
  for (const char* name : {"x", "y", "l1.W", "params", "m", "v", "step.scalars"}) EXPECT_NE(inputs.find(name), nullptr) << name;
  EXPECT_EQ(inputs.find("x")->toFloats(), data.x);
  std::filesystem::remove_all(folder);
}

TEST(Compile, model_without_default_constructor_needs_a_maker) {
  struct Sized : Module {
    explicit Sized(int64_t width) : l(*this, "l", 1, width) {}
    nn::Linear l;
  };
  CompileSpec<Sized> spec{
      .inputs = {{"x", f32(2, 1)}}, .loss = [](const Sized& m, const Inputs& in) { return mean(m.l(in["x"])); }, .device = "reference"};
  EXPECT_EQ(caught([&] { compile<Sized>(spec); }).code(), "compile.function");
  spec.make = [] { return std::make_unique<Sized>(5); };
  EXPECT_EQ(compile<Sized>(spec).facts().parameters, 10);
}

}  // namespace
}  // namespace lockstep
