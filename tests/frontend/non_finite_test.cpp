// SPDX-License-Identifier: Apache-2.0
// A loss that is not finite is a typed failure that says where it began.
#include "frontend/train/non_finite.h"

#include "frontend/trace/trace_function.h"
#include "ir/graph/evaluate.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

class NonFinite : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, NonFinite, testing::Values("reference", "vulkan"), deviceName);

struct Scale : Module {
  Parameter w{*this, "w", {3}, init::literal({1, 2, 3})};
};
Tensor lossOf(const Scale& model, const Inputs& in) {
  Tensor scaled = model.w * in["x"];
  return mean(square(log(scaled)));
}

/// The origin for a loss of `w` = {1, 2, 3} and x.
std::optional<NonFiniteOrigin> originOf(const std::string& device, std::vector<float> x,
                                        const std::function<Tensor(const Scale&, const Inputs&)>& loss = lossOf) {
  const Scale model;
  const std::vector<InputSpec> inputs{{"x", f32(3)}};
  const graph::Graph traced =
      detail::traceFunction(&model, inputs, detail::eraseModel<Scale>(loss), graph::OutputKind::Loss, Where::current());
  auto states = std::make_shared<detail::States>(detail::openChosenDevice(device));
  detail::NonFiniteProbe probe(traced, {}, states, inputs);
  std::vector<float> flat(64, 0.0f);
  std::ranges::copy(std::vector<float>{1, 2, 3}, flat.begin());
  states->writeFloats("params", flat);
  return probe.find({HostTensor("x", f32(3), std::as_bytes(std::span(x)))});
}

TEST_P(NonFinite, nothing_is_found_where_all_is_finite) {
  EXPECT_FALSE(originOf(GetParam(), {1, 2, 3}).has_value());
  // The largest number of f32 is finite.
  EXPECT_FALSE(originOf(GetParam(), {3.4028234e38f, 1e-30f, 1e30f}).has_value());
}

TEST_P(NonFinite, first_value_and_its_operands_are_named) {
  const auto origin = originOf(GetParam(), {1, -2, -3});
  ASSERT_TRUE(origin.has_value());
  EXPECT_EQ(origin->value.op, "log");
  EXPECT_EQ(origin->value.type, f32(3));
  EXPECT_EQ(origin->value.non_finite, 2);
  EXPECT_TRUE(origin->value.where.file.ends_with("non_finite_test.cpp")) << origin->value.where.file;
  EXPECT_FALSE(origin->in_gradient);
  ASSERT_EQ(origin->operands.size(), 1u);
  EXPECT_EQ(origin->operands[0].op, "mul");
  EXPECT_EQ(origin->operands[0].non_finite, 0);
}

TEST_P(NonFinite, infinity_of_the_data_is_found_in_the_data) {
  const auto origin = originOf(GetParam(), {1, INFINITY, 3});
  ASSERT_TRUE(origin.has_value());
  EXPECT_EQ(origin->value.op, "input");
  EXPECT_EQ(origin->value.name, "x");
  EXPECT_EQ(origin->value.non_finite, 1);
  const StepResult result{.step = 7, .loss = NAN, .grad_norm = {}, .captures = {}, .failure = {}};
  EXPECT_EQ(detail::describeNonFinite(result, origin).message,
            "the loss of step 7 is nan; the first value that is not finite is input 'x' f32[3]: 1 of 3 elements not finite");
}

TEST_P(NonFinite, relu_does_not_hide_what_it_gets) {
  struct Network : Module {
    nn::Linear l1{*this, "l1", 4, 8}, l2{*this, "l2", 8, 3};
  };
  auto trainer =
      compile<Network>({.inputs = {{"x", f32(5, 4)}, {"label", i32(5)}},
                        .loss = [](const Network& m, const Inputs& in) { return cross_entropy(m.l2(relu(m.l1(in["x"]))), in["label"]); },
                        .optimizer = sgd({.lr = 1e-3}),
                        .seed = 1,
                        .device = GetParam()});
  std::vector<float> x(20, 0.5f);
  const std::vector<int32_t> labels{0, 1, 2, 0, 1};
  EXPECT_TRUE(trainer.step({{"x", x}, {"label", labels}}).completed());
  x[7] = NAN;
  const StepResult result = trainer.step({{"x", x}, {"label", labels}});
  ASSERT_FALSE(result.completed());
  EXPECT_TRUE(std::isnan(result.loss));
  ASSERT_TRUE(result.failure->origin.has_value());
  EXPECT_EQ(result.failure->origin->value.op, "input");
  EXPECT_EQ(result.failure->origin->value.name, "x");
  EXPECT_EQ(result.failure->origin->value.non_finite, 1);
}

TEST_P(NonFinite, gradients_are_looked_at_too) {
  // The root of 0 is finite, its slope is not.
  const auto origin = originOf(GetParam(), {0, 1, 1}, [](const Scale& model, const Inputs& in) { return mean(sqrt(model.w * in["x"])); });
  ASSERT_TRUE(origin.has_value());
  EXPECT_TRUE(origin->in_gradient);
}

CompileSpec<Scale> scaleSpec(const std::string& device) {
  return {.inputs = {{"x", f32(3)}}, .loss = lossOf, .optimizer = sgd({.lr = 1e-3}), .seed = 1, .device = device};
}

TEST_P(NonFinite, step_fails_with_the_loss_and_the_step) {
  auto trainer = compile<Scale>(scaleSpec(GetParam()));
  const std::vector<float> good{1, 2, 3}, bad{1, -2, 3};
  EXPECT_TRUE(trainer.step({{"x", good}}).completed());
  EXPECT_EQ(trainer.run_facts().compilations, 1u);
  const ParameterValues before = trainer.download();
  const StepResult result = trainer.step({{"x", bad}});
  ASSERT_FALSE(result.completed());
  EXPECT_EQ(result.failure->kind, FailureKind::NonFinite);
  EXPECT_EQ(result.step, 2u);
  EXPECT_FALSE(std::isfinite(result.loss));
  ASSERT_TRUE(result.failure->origin.has_value());
  EXPECT_EQ(result.failure->origin->value.op, "log");
  EXPECT_EQ(result.failure->origin->value.non_finite, 1);
  const Error error = caught([&] { (void)result.or_throw(); });
  EXPECT_EQ(error.code(), "step.non_finite");
  EXPECT_EQ(error.exitCode(), ExitCode::NumericCheck);
  EXPECT_EQ(trainer.step_count(), 2u);
  // The step changed nothing, so training goes on.
  EXPECT_EQ(trainer.download(), before);
  EXPECT_TRUE(trainer.step({{"x", good}}).completed());
}

TEST_P(NonFinite, random_numbers_of_the_step_are_those_of_the_search) {
  CompileSpec<Scale> spec = scaleSpec(GetParam());
  // Finite or not by a number that only the step's own key gives again.
  spec.loss = [](const Scale& model, const Inputs& in) { return mean(square(log(model.w * in["x"] - uniform({3})))); };
  auto trainer = compile<Scale>(spec);
  const std::vector<float> x{0.5f, 0.25f, 0.2f};
  int failed = 0;
  for (int step = 0; step < 12; ++step) {
    const StepResult result = trainer.step({{"x", x}});
    if (result.completed()) continue;
    ++failed;
    ASSERT_TRUE(result.failure->origin.has_value()) << "step " << result.step;
    EXPECT_EQ(result.failure->origin->value.op, "log");
  }
  EXPECT_GT(failed, 0);
}

TEST_P(NonFinite, later_steps_of_a_submission_fail_without_a_search) {
  auto trainer = compile<Scale>(scaleSpec(GetParam()));
  const std::vector<float> bad{1, -2, 3};
  const std::vector<StepResult> results = trainer.steps(3, [&](size_t) { return Batch{{"x", bad}}; });
  ASSERT_EQ(results.size(), 3u);
  for (const StepResult& result : results) EXPECT_FALSE(result.completed());
  EXPECT_TRUE(results[0].failure->origin.has_value());
  EXPECT_FALSE(results[2].failure->origin.has_value());
}

/// Finite at x = 0, where its slope is not. The buffer counts steps.
struct Root : Module {
  Parameter w{*this, "w", {3}, init::literal({1, 2, 3})};
  Buffer steps{*this, "steps", {}};
};
CompileSpec<Root> rootSpec(const std::string& device, const OptimizerSpec& optimizer) {
  return {.inputs = {{"x", f32(3)}},
          .loss =
              [](const Root& m, const Inputs& in) {
                m.steps.update(m.steps + 1.0);
                return mean(sqrt(m.w * in["x"]));
              },
          .optimizer = optimizer,
          .seed = 1,
          .device = device};
}
const std::vector<float> kFine{1, 2, 3}, kZero{0, 1, 1};

TEST_P(NonFinite, gradients_that_are_not_finite_fail_and_change_nothing) {
  for (const OptimizerSpec& optimizer :
       {adam({.lr = 1e-3}, {.clip_grad_norm = 1}), adam({.lr = 1e-3}, {.clip_grad_value = 1, .check_gradients = true})}) {
    auto trainer = compile<Root>(rootSpec(GetParam(), optimizer));
    ASSERT_TRUE(trainer.step({{"x", kFine}}).completed());
    const auto before = trainer.checkpoint().tensors;
    const StepResult result = trainer.step({{"x", kZero}});
    ASSERT_FALSE(result.completed());
    EXPECT_EQ(result.failure->kind, FailureKind::NonFinite);
    EXPECT_TRUE(std::isfinite(result.loss));
    ASSERT_TRUE(result.grad_norm.has_value());
    EXPECT_FALSE(std::isfinite(*result.grad_norm));
    ASSERT_TRUE(result.failure->origin.has_value());
    EXPECT_TRUE(result.failure->origin->in_gradient);
    EXPECT_EQ(result.failure->origin->value.non_finite, 1);
    EXPECT_NE(caught([&] { (void)result.or_throw(); }).what(), std::string());
    EXPECT_TRUE(result.failure->diagnostics[0].message.starts_with("the gradient norm of step 2 is"))
        << result.failure->diagnostics[0].message;
    EXPECT_EQ(trainer.checkpoint().tensors, before);
    EXPECT_TRUE(trainer.step({{"x", kFine}}).completed());
  }
}

TEST_P(NonFinite, gradient_norm_is_reported_where_there_is_one) {
  auto trainer = compile<Scale>({.inputs = {{"x", f32(3)}},
                                 .loss = [](const Scale& m, const Inputs& in) { return sum(m.w * in["x"]); },
                                 .optimizer = sgd({}, {.check_gradients = true}),
                                 .device = GetParam()});
  const std::vector<float> x{2, 3, 6}, large{1e30f, 0, 0};
  EXPECT_NEAR(trainer.step({{"x", x}}).grad_norm.value(), 7, 1e-5);
  const StepResult overflow = trainer.step({{"x", large}});
  ASSERT_FALSE(overflow.completed());
  EXPECT_FALSE(overflow.failure->origin.has_value());
  EXPECT_NE(overflow.failure->diagnostics[0].notes.at(0).message.find("squares"), std::string::npos);
  auto plain = compile<Root>(rootSpec(GetParam(), sgd({.lr = 1e-3})));
  EXPECT_FALSE(plain.step({{"x", kFine}}).grad_norm.has_value());
}

TEST_P(NonFinite, accumulated_gradients_are_looked_at_together) {
  CompileSpec<Root> spec = rootSpec(GetParam(), adam({.lr = 1e-3}, {.check_gradients = true}));
  spec.accumulate = 2;
  auto trainer = compile<Root>(spec);
  const ParameterValues before = trainer.download();
  const std::vector<float> first_bad{0, 1, 1, 1, 2, 3}, both_fine{1, 2, 3, 1, 2, 3};
  const StepResult result = trainer.step({{"x", first_bad}});
  ASSERT_FALSE(result.completed());
  EXPECT_TRUE(result.failure->origin.has_value());
  EXPECT_EQ(trainer.download().at("w"), before.at("w"));
  EXPECT_TRUE(trainer.step({{"x", both_fine}}).completed());  // nothing is left in the sum
  EXPECT_NE(trainer.download().at("w"), before.at("w"));
}

TEST_P(NonFinite, search_says_when_states_have_changed_since) {
  auto trainer = compile<Scale>(scaleSpec(GetParam()));
  const std::vector<float> good{1, 2, 3}, bad{1, -2, 3};
  auto notes = [&](std::initializer_list<const std::vector<float>*> data) {
    std::vector<const std::vector<float>*> steps(data);
    const auto results = trainer.steps(steps.size(), [&](size_t i) { return Batch{{"x", *steps[i]}}; });
    std::string text;
    for (const StepResult& result : results) {
      if (!result.failure || !result.failure->origin) continue;
      EXPECT_EQ(result.failure->origin->value.op, "log");
      for (const Note& note : result.failure->diagnostics[0].notes) text += note.message + "\n";
    }
    return text;
  };
  const std::string words = "states that have changed since";
  EXPECT_EQ(notes({&good, &bad, &bad}).find(words), std::string::npos);
  EXPECT_NE(notes({&bad, &good}).find(words), std::string::npos);
  const uint64_t ticket = trainer.enqueue(1, [&](size_t) { return Batch{{"x", bad}}; });
  trainer.upload(trainer.download());
  EXPECT_NE(trainer.wait(ticket)[0].failure->diagnostics[0].notes.back().message.find(words), std::string::npos);
}

TEST_P(NonFinite, search_can_be_left_out) {
  CompileSpec<Scale> spec = scaleSpec(GetParam());
  spec.find_non_finite = false;
  auto trainer = compile<Scale>(spec);
  const std::vector<float> bad{1, -2, 3};
  const StepResult result = trainer.step({{"x", bad}});
  ASSERT_FALSE(result.completed());
  EXPECT_FALSE(result.failure->origin.has_value());
}

}  // namespace
}  // namespace lockstep
