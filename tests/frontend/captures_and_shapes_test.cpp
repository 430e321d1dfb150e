// SPDX-License-Identifier: Apache-2.0
// One trainer, several programs: captures only when they are asked for, dynamic extents, and what is kept of both.
#include <thread>

#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

class Programs : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Programs, testing::Values("reference", "vulkan"), deviceName);

Tensor forwardOf(const Mlp& model, const Inputs& in) { return model(in["x"]); }

/// The usual model with any number of rows.
CompileSpec<Mlp> dynamicSpec(const std::string& device) {
  CompileSpec<Mlp> spec = specFor(device);
  spec.inputs = {{"x", f32(dynamic, 1)}, {"y", f32(dynamic, 1)}};
  return spec;
}

Data rows(size_t count, size_t step = 0) {
  Data data = dataOf(step);
  data.x.resize(count, 0.5f);
  data.y.resize(count, 0.25f);
  return data;
}

TEST_P(Programs, captures_hold_what_was_declared) {
  auto trainer = make();
  StepResult result = trainer.step(batchOf(dataOf(0)), {.captures = true});
  EXPECT_EQ(result.captures.names(), (std::vector<std::string>{"hidden"}));
  EXPECT_EQ(result.captures.get("hidden").shape(), (Shape{kBatch, 16}));
  Error error = caught([&] { (void)result.captures.get("other"); });
  EXPECT_EQ(error.code(), "capture.unknown");
  EXPECT_EQ(error.diagnostics().front().remedy, "known: hidden");
  EXPECT_EQ(result.captures.per_head("hidden").size(), kBatch);
}

TEST_P(Programs, captures_are_paid_for_only_when_they_are_asked_for) {
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.loss = [](const Mlp& model, const Inputs& in) {
    Tensor y = model(in["x"]);
    capture("unneeded", exp(y));
    return mean(square(y - in["y"]));
  };
  auto trainer = compile<Mlp>(spec), plain = make();
  EXPECT_TRUE(trainer.step(batchOf(dataOf(0))).captures.names().empty());
  EXPECT_EQ(trainer.facts().planned_bytes, plain.facts().planned_bytes);
  const uint64_t bytes = trainer.run_facts().device_bytes;
  EXPECT_EQ(trainer.run_facts().programs, 1u);
  StepResult seen = trainer.step(batchOf(dataOf(1)), {.captures = true});
  EXPECT_EQ(trainer.run_facts().programs, 2u);
  EXPECT_GT(trainer.run_facts().device_bytes - bytes, bytes);
  // The variant works on the same states and gives the same numbers.
  plain.step(batchOf(dataOf(0)));
  EXPECT_FLOAT_EQ(seen.loss, plain.step(batchOf(dataOf(1))).loss);
  EXPECT_FLOAT_EQ(trainer.step(batchOf(dataOf(2))).loss, plain.step(batchOf(dataOf(2))).loss);
  EXPECT_EQ(trainer.run_facts().compilations, 2u);
}

TEST_P(Programs, dynamic_extent_follows_the_data) {
  auto trainer = compile<Mlp>(dynamicSpec(GetParam()));
  auto fixed = make();
  EXPECT_EQ(trainer.run_facts().compilations, 0u);
  EXPECT_EQ(trainer.download(), fixed.download());
  EXPECT_EQ(trainer.step(batchOf(dataOf(0))).loss, fixed.step(batchOf(dataOf(0))).loss);
  EXPECT_EQ(trainer.facts().dispatches, fixed.facts().dispatches);
  EXPECT_TRUE(std::isfinite(trainer.step(batchOf(rows(5))).loss));
  EXPECT_TRUE(std::isfinite(trainer.step(batchOf(rows(1))).loss));
  trainer.step(batchOf(rows(5)));
  EXPECT_EQ(trainer.run_facts().compilations, 3u);
  EXPECT_EQ(trainer.step_count(), 4u);
}

TEST_P(Programs, dynamic_extents_of_a_call_must_agree_and_divide) {
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.inputs = {{"x", f32(dynamic, 1)}, {"y", f32(2, dynamic)}};
  spec.loss = [](const Mlp& model, const Inputs& in) { return mean(square(model(in["x"]))) + mean(in["y"]); };
  auto trainer = compile<Mlp>(spec);
  std::vector<float> three(3), four(4), six(6), none;
  auto code = [&](const Batch& batch) { return caught([&] { trainer.step(batch); }).code(); };
  EXPECT_EQ(code({{"x", three}, {"y", three}}), "batch.length");
  EXPECT_EQ(code({{"x", three}, {"y", four}}), "batch.extent");
  EXPECT_EQ(code({{"x", none}, {"y", none}}), "batch.length");
  EXPECT_EQ(trainer.step_count(), 0u);
  EXPECT_EQ(trainer.run_facts().compilations, 0u);
  EXPECT_TRUE(trainer.step({{"x", three}, {"y", six}}).completed());
  // The steps of one submission run one program.
  std::vector<float> eight(8);
  auto uneven = [&](size_t i) { return i == 0 ? Batch{{"x", three}, {"y", six}} : Batch{{"x", four}, {"y", eight}}; };
  EXPECT_EQ(caught([&] { trainer.steps(2, uneven); }).code(), "batch.extent");
  EXPECT_EQ(trainer.step_count(), 1u);
}

TEST_P(Programs, least_recently_used_program_goes_and_the_states_stay) {
  CompileSpec<Mlp> spec = dynamicSpec(GetParam());
  spec.cached_programs = 2;
  auto trainer = compile<Mlp>(spec);
  for (size_t count : {3, 4, 3, 5}) trainer.step(batchOf(rows(count)));  // 4 went for 5
  EXPECT_EQ(trainer.run_facts().programs, 2u);
  EXPECT_EQ(trainer.run_facts().compilations, 3u);
  trainer.step(batchOf(rows(3)));
  EXPECT_EQ(trainer.run_facts().compilations, 3u);
  trainer.step(batchOf(rows(4)));
  EXPECT_EQ(trainer.run_facts().compilations, 4u);
  EXPECT_EQ(trainer.run_facts().steps, 6u);

  spec.cached_programs = 8;
  auto keeper = compile<Mlp>(spec);
  for (size_t count : {3, 4, 3, 5, 3, 4}) keeper.step(batchOf(rows(count)));
  EXPECT_EQ(keeper.download(), trainer.download());
  EXPECT_GT(keeper.run_facts().device_bytes, trainer.run_facts().device_bytes);
}

TEST_P(Programs, shape_that_does_not_fit_is_a_failure_of_its_step_only) {
  CompileSpec<Mlp> spec = dynamicSpec(GetParam());
  spec.memory_limit = 100000;
  auto trainer = compile<Mlp>(spec);
  EXPECT_TRUE(trainer.step(batchOf(rows(4))).completed());
  const StepResult result = trainer.step(batchOf(rows(100000)));
  ASSERT_FALSE(result.completed());
  EXPECT_EQ(result.failure->kind, FailureKind::OutOfMemory);
  EXPECT_TRUE(std::isnan(result.loss));
  EXPECT_EQ(caught([&] { (void)result.or_throw(); }).exitCode(), ExitCode::OutOfMemory);
  // It was never submitted, so it does not count.
  EXPECT_EQ(trainer.step_count(), 1u);
  EXPECT_EQ(trainer.step(batchOf(rows(4))).step, 2u);
}

TEST_P(Programs, evicted_program_finishes_its_steps) {
  CompileSpec<Mlp> spec = dynamicSpec(GetParam());
  spec.cached_programs = 1;
  auto trainer = compile<Mlp>(spec);
  Data first = rows(3), second = rows(4);
  const uint64_t a = trainer.enqueue(1, [&](size_t) { return batchOf(first); });
  const uint64_t b = trainer.enqueue(1, [&](size_t) { return batchOf(second); });
  EXPECT_TRUE(trainer.wait(b).front().completed());
  EXPECT_TRUE(trainer.wait(a).front().completed());
}

TEST_P(Programs, forward_takes_any_number_of_rows) {
  auto trainer = make();
  Forward forward = trainer.attach({.inputs = {{"x", f32(dynamic, 1)}}, .forward = forwardOf, .cached_programs = 2});
  for (size_t count : {1, 2, 7, 2, 1}) {
    const HostTensor output = forward.run({{"x", rows(count).x}}).output;
    EXPECT_EQ(output.shape(), (Shape{static_cast<int64_t>(count), 1}));
  }
  EXPECT_EQ(forward.run_facts().programs, 2u);
  EXPECT_EQ(forward.run_facts().compilations, 4u);
}

TEST_P(Programs, threads_that_ask_for_a_new_shape_compile_it_once) {
  auto trainer = make();
  Forward forward = trainer.attach({.inputs = {{"x", f32(dynamic, 1)}}, .forward = forwardOf});
  std::vector<float> x(9, 0.5f);
  std::vector<std::thread> threads;
  std::vector<float> got(6);
  for (size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] { got[i] = forward.run({{"x", x}}).output.floats()[0]; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(forward.run_facts().compilations, 1u);
  for (float value : got) EXPECT_EQ(value, got[0]);
}

TEST_P(Programs, steps_of_many_threads_all_count) {
  auto trainer = make();
  Forward forward = trainer.attach({.inputs = {{"x", f32(3, 1)}}, .forward = forwardOf});
  std::vector<std::thread> threads;
  std::vector<float> x{-0.5f, 0.25f, 1.0f}, shorter(kBatch - 1);
  std::atomic<int> failures = 0;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (size_t k = 0; k < 5; ++k) {
        trainer.step(batchOf(dataOf(5 * i + k)));
        (void)forward.run({{"x", x}});
        // A call that fails holds up nobody.
        failures += caught([&] { trainer.step({{"x", shorter}, {"y", shorter}}); }).code() == "batch.length" ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(trainer.step_count(), 20u);
  EXPECT_EQ(trainer.run_facts().steps, 20u);
}

TEST_P(Programs, batch_function_may_ask_but_not_step) {
  auto trainer = make();
  Data data = dataOf(0);
  trainer.steps(2, [&](size_t i) {
    EXPECT_EQ(trainer.step_count(), 0u);
    EXPECT_GT(trainer.lr(), 0);
    if (i == 1) {
      EXPECT_EQ(caught([&] { trainer.step(batchOf(data)); }).code(), "trainer.busy");
    }
    return batchOf(data);
  });
  EXPECT_EQ(trainer.step_count(), 2u);
}

TEST_P(Programs, scalars_are_those_of_the_time_of_the_call) {
  auto trainer = make();
  Data data = dataOf(0);
  const ParameterValues before = trainer.download();
  trainer.set_lr(0.0);
  const uint64_t frozen = trainer.enqueue(2, [&](size_t) { return batchOf(data); });
  trainer.set_lr(1.0);
  trainer.wait(frozen);
  EXPECT_EQ(trainer.download(), before);
}

TEST(Declarations, only_one_extent_of_an_input_is_dynamic) {
  CompileSpec<Mlp> spec = specFor("reference");
  spec.inputs[0].type = f32(dynamic, dynamic);
  const Error error = caught([&] { compile<Mlp>(spec); });
  EXPECT_EQ(error.code(), "compile.input");
  EXPECT_NE(std::string(error.what()).find("f32[?,?]"), std::string::npos) << error.what();
}

TEST(Declarations, error_of_a_shape_comes_with_its_first_batch_and_breaks_nothing) {
  CompileSpec<Mlp> spec = specFor("reference");
  spec.inputs = {{"x", f32(dynamic, 1)}, {"y", f32(4, 1)}};
  spec.loss = [](const Mlp& model, const Inputs& in) { return mean(square(matmul(reshape(model(in["x"]), {1, 4}), in["y"]))); };
  auto trainer = compile<Mlp>(spec);
  std::vector<float> three(3), four(4);
  EXPECT_EQ(caught([&] { trainer.step({{"x", three}, {"y", four}}); }).code().substr(0, 7), "reshape");
  EXPECT_TRUE(trainer.step({{"x", four}, {"y", four}}).completed());
  EXPECT_EQ(trainer.step_count(), 1u);
}

}  // namespace
}  // namespace lockstep
