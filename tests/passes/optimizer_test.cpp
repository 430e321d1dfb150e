// SPDX-License-Identifier: Apache-2.0
// The optimizer's graphs against scalar loops, and what its programs cost.
#include "passes/graph/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ir/graph/evaluate.h"
#include "passes/graph/grad.h"
#include "passes/pipeline.h"

namespace lockstep::passes {
namespace {

using namespace graph;

/// sum(a x0) + sum(b x1) + sum(c x2): the gradients are the inputs. The loss is scaled, so that it can be made infinite.
Graph linearModel(const std::vector<int64_t>& sizes) {
  Builder b;
  ValueId loss = b.constant(0, Shape{});
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::string name(1, static_cast<char>('a' + i));
    b.mutableGraph().parameters.push_back({name, {DType::F32, Shape{sizes[i]}}, true});
    ValueId p = b.make("parameter", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::vector{sizes[i]}}});
    ValueId x = b.make("input", {}, {{"name", "x" + std::to_string(i)}, {"dtype", DType::F32}, {"shape", std::vector{sizes[i]}}});
    ValueId product = b.mul(p, x);
    loss = b.add(loss, b.sum(product, 0, false));
  }
  b.output(OutputKind::Loss, "loss", loss);
  return b.take();
}

/// Flat states of a training run through the evaluator.
struct Training {
  Graph graph;
  OptimizerConfig config;
  std::vector<int64_t> sizes;
  LeafValues leaves;

  Training(std::vector<int64_t> parameter_sizes, OptimizerConfig optimizer_config, double start)
      : config(std::move(optimizer_config)), sizes(std::move(parameter_sizes)) {
    graph = optimizer(grad(linearModel(sizes)).orThrow(), config).orThrow();
    EXPECT_TRUE(validate(graph).ok());
    for (const Output& output : graph.outputs) {
      if (output.kind != OutputKind::NextState) continue;
      std::vector<double> values(static_cast<size_t>(graph.shapeOf(output.value).elementCount()), 0.0);
      if (output.name == kParameterState || output.name == kAverageState) std::fill(values.begin(), values.end(), start);
      leaves[output.name] = {graph.typeOf(output.value), std::move(values)};
    }
  }
  /// One run with gradient `g(parameter, element)`.
  void step(double lr, uint64_t t, const std::function<double(size_t, size_t)>& g, bool apply = true) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<double> x(static_cast<size_t>(sizes[i]));
      for (size_t e = 0; e < x.size(); ++e) x[e] = g(i, e);
      leaves["x" + std::to_string(i)] = {{DType::F32, Shape{sizes[i]}}, std::move(x)};
    }
    auto scalars = stepScalars(config, lr, t, apply);
    leaves[std::string(kScalarsInput)] = {{DType::F32, Shape{4}}, {scalars.begin(), scalars.end()}};
    std::vector<Tensor> outputs = evaluate(graph, leaves).orThrow();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (graph.outputs[i].kind == OutputKind::NextState) leaves[graph.outputs[i].name] = outputs[i];
    }
  }
  double at(std::string_view state, size_t element) const { return leaves.find(state)->second.data[element]; }
};

double gradientOf(size_t i, size_t e, int t) { return std::sin(1.0 + static_cast<double>(i) + 0.1 * static_cast<double>(e) + t); }

struct Element {
  double p = 0.5, m = 0, v = 0;
};
/// What a rule does to one element with gradient g at step t.
struct RuleCase {
  const char* name;
  OptimizerConfig config;
  std::function<void(Element&, double g, int t)> step;
};
constexpr double kLr = 0.1, kDecay = 0.25;

std::vector<RuleCase> ruleCases() {
  auto adam = [](bool corrected, double decay) {
    return [=](Element& s, double g, int t) {
      s.m = 0.9 * s.m + 0.1 * g;
      s.v = 0.99 * s.v + 0.01 * g * g;
      double c1 = 1 - std::pow(0.9, t), c2 = 1 - std::pow(0.99, t);
      double step = corrected ? (s.m / c1) / (std::sqrt(s.v / c2) + 1e-2) : std::sqrt(c2) / c1 * s.m / (std::sqrt(s.v) + 1e-2);
      s.p = (1 - kLr * decay) * s.p - kLr * step;
    };
  };
  auto sgd = [](bool nesterov) {
    return [=](Element& s, double g, int) {
      g += kDecay * s.p;
      s.m = 0.9 * s.m + g;
      s.p -= kLr * (nesterov ? g + 0.9 * s.m : s.m);
    };
  };
  auto lion = [](Element& s, double g, int) {
    double c = 0.9 * s.m + 0.1 * g;
    s.p -= kLr * ((c > 0 ? 1.0 : c < 0 ? -1.0 : 0.0) + kDecay * s.p);
    s.m = 0.99 * s.m + 0.01 * g;
  };
  OptimizerConfig plain{.kind = OptimizerKind::Adam, .beta2 = 0.99, .epsilon = 1e-2};
  OptimizerConfig corrected = plain, decoupled = plain;
  corrected.corrected_epsilon = true;
  decoupled.kind = OptimizerKind::AdamW;
  decoupled.weight_decay = kDecay;
  OptimizerConfig lion_config = decoupled, momentum{.kind = OptimizerKind::Sgd, .weight_decay = kDecay, .momentum = 0.9};
  lion_config.kind = OptimizerKind::Lion;
  OptimizerConfig nesterov = momentum;
  nesterov.nesterov = true;
  return {{"adam", plain, adam(false, 0)},           {"adam_corrected_epsilon", corrected, adam(true, 0)},
          {"adamw", decoupled, adam(false, kDecay)}, {"sgd", momentum, sgd(false)},
          {"sgd_nesterov", nesterov, sgd(true)},     {"lion", lion_config, lion}};
}

class Rule : public testing::TestWithParam<RuleCase> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, Rule, testing::ValuesIn(ruleCases()), [](const auto& info) { return std::string(info.param.name); });

TEST_P(Rule, equals_a_loop_over_elements) {
  Training run({3, 70}, GetParam().config, 0.5);
  std::vector<Element> want(64 + 70);
  for (int t = 1; t <= 4; ++t) {
    run.step(kLr, static_cast<uint64_t>(t), [&](size_t i, size_t e) { return gradientOf(i, e, t); });
    for (size_t e = 0; e < 3; ++e) GetParam().step(want[e], gradientOf(0, e, t), t);
    for (size_t e = 0; e < 70; ++e) GetParam().step(want[64 + e], gradientOf(1, e, t), t);
  }
  for (size_t e : {0u, 1u, 2u, 64u, 100u, 133u}) EXPECT_NEAR(run.at("params", e), want[e].p, 1e-12) << e;
}

TEST(Optimizer, settings_reach_their_parameters_only) {
  OptimizerConfig config{.kind = OptimizerKind::AdamW, .weight_decay = 0.5};
  config.parameters["b"] = {.lr_factor = 0.5, .weight_decay = 2};
  Training run({2, 2, 2}, config, 1);
  run.step(0.1, 1, [](size_t, size_t) { return 0.0; });
  EXPECT_NEAR(run.at("params", 0), 1 - 0.1 * 0.5, 1e-12);
  EXPECT_NEAR(run.at("params", 64), 1 - 0.05 * 2, 1e-12);
  EXPECT_NEAR(run.at("params", 128), 1 - 0.1 * 0.5, 1e-12);
}

TEST(Optimizer, normalizes_then_clips_by_value_then_by_norm) {
  OptimizerConfig config{.kind = OptimizerKind::Sgd, .clip_grad_value = 3, .clip_grad_norm = 2};
  config.parameters["a"] = {.normalize = true};
  Training run({2, 1}, config, 0);
  run.step(1, 1, [](size_t i, size_t e) { return i == 0 ? (e == 0 ? 30.0 : 40.0) : 50.0; });
  // (0.6, 0.8) and 50, which is limited to 3; their norm is √10.
  double scale = 2 / (std::sqrt(10) + 1e-6);
  EXPECT_NEAR(run.at("params", 0), -0.6 * scale, 1e-9);
  EXPECT_NEAR(run.at("params", 1), -0.8 * scale, 1e-9);
  EXPECT_NEAR(run.at("params", 64), -3 * scale, 1e-9);
}

TEST(Optimizer, average_follows_the_parameters) {
  OptimizerConfig config{.kind = OptimizerKind::Sgd, .ema_decay = 0.75};
  config.parameters["b"] = {.frozen = true};
  Training run({1, 1}, config, 1);
  double p = 1, average = 1;
  for (uint64_t t = 1; t <= 3; ++t) {
    run.step(0.5, t, [](size_t, size_t) { return 1.0; });
    p -= 0.5;
    average = 0.75 * average + 0.25 * p;
  }
  EXPECT_NEAR(run.at("ema", 0), average, 1e-12);
  EXPECT_EQ(run.at("params", 64), 1);
  EXPECT_EQ(run.at("ema", 64), 1);
}

TEST(Optimizer, loss_that_is_not_finite_changes_nothing) {
  OptimizerConfig config{.kind = OptimizerKind::AdamW, .weight_decay = 0.1, .clip_grad_norm = 1, .ema_decay = 0.9};
  Training run({2}, config, 1);
  run.step(0.1, 1, [](size_t, size_t) { return 1.0; });
  LeafValues before = run.leaves;
  for (double bad : {std::nan(""), static_cast<double>(INFINITY)}) {
    run.step(0.1, 2, [&](size_t, size_t e) { return e == 0 ? bad : 1.0; });
    for (const char* state : {"params", "m", "v", "ema"}) EXPECT_EQ(run.leaves[state].data, before[state].data) << state;
  }
  run.config.skip_non_finite = false;
  Training unguarded({2}, run.config, 1);
  unguarded.step(0.1, 1, [](size_t, size_t e) { return e == 0 ? std::nan("") : 1.0; });
  EXPECT_TRUE(std::isnan(unguarded.at("params", 0)));
}

TEST(Optimizer, accumulated_runs_equal_one_step_of_their_mean) {
  for (bool normalize : {false, true}) {
    OptimizerConfig config{.kind = OptimizerKind::AdamW, .weight_decay = 0.1, .clip_grad_norm = 1};
    config.parameters["b"] = {.normalize = normalize};
    Training whole({3, 5}, config, 1);
    config.accumulate = 4;
    Training parts({3, 5}, config, 1);
    for (uint64_t t = 1; t <= 3; ++t) {
      auto share = [&](size_t i, size_t e, int run) { return gradientOf(i, e, static_cast<int>(10 * t) + run); };
      whole.step(0.1, t, [&](size_t i, size_t e) { return (share(i, e, 0) + share(i, e, 1) + share(i, e, 2) + share(i, e, 3)) / 4; });
      for (int run = 0; run < 4; ++run) {
        double before = parts.at("params", 0);
        parts.step(0.1, t, [&](size_t i, size_t e) { return share(i, e, run); }, run == 3);
        EXPECT_EQ(parts.at("params", 0) != before, run == 3);
      }
      EXPECT_EQ(parts.at("accumulated", 0), 0);
      for (size_t e : {0u, 2u, 64u, 68u}) EXPECT_NEAR(parts.at("params", e), whole.at("params", e), 1e-12);
    }
  }
}

TEST(Optimizer, one_run_that_is_not_finite_spoils_its_whole_step) {
  OptimizerConfig config{.kind = OptimizerKind::Sgd, .clip_grad_value = 2, .accumulate = 3};
  Training run({2}, config, 1);
  auto steps = [&](double first) {
    for (int i = 0; i < 3; ++i) run.step(0.1, 1, [&](size_t, size_t e) { return i == 0 && e == 0 ? first : 1.0; }, i == 2);
  };
  steps(std::nan(""));
  EXPECT_EQ(run.at("params", 0), 1);
  EXPECT_EQ(run.at("params", 1), 1);
  steps(1);
  EXPECT_NEAR(run.at("params", 0), 0.9, 1e-7);
  EXPECT_NEAR(run.at("params", 1), 0.9, 1e-7);
}

TEST(Optimizer, mistakes_are_named) {
  Graph model = grad(linearModel({2, 2})).orThrow();
  auto code = [&](const OptimizerConfig& config) { return optimizer(model, config).diagnostics().front().code; };
  OptimizerConfig frozen;
  frozen.parameters = {{"a", {.frozen = true}}, {"b", {.frozen = true}}};
  EXPECT_EQ(code(frozen), "optimizer.C1");
  EXPECT_EQ(code({.kind = OptimizerKind::Sgd, .nesterov = true}), "optimizer.C2");
  EXPECT_EQ(code({.accumulate = 0}), "optimizer.C3");
  OptimizerConfig unknown;
  unknown.parameters = {{"z", {}}};
  EXPECT_EQ(code(unknown), "optimizer.C4");
}

// What programs cost.

/// A chain of layers w0, w1, …
Graph layers(int count, int64_t batch = 64) {
  Builder b;
  auto leaf = [&](const char* op, const std::string& name, int64_t rows) {
    return b.make(op, {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{rows, 64}}});
  };
  ValueId h = leaf("input", "x", batch);
  for (int i = 0; i < count; ++i) {
    std::string name = "w" + std::to_string(i);
    b.mutableGraph().parameters.push_back({name, {DType::F32, Shape{64, 64}}, true});
    ValueId w = leaf("parameter", name, 64);
    h = b.make("relu", {b.make("matmul", {h, w})});
  }
  ValueId sum = b.make("sum", {h}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
  b.output(OutputKind::Loss, "loss", sum);
  return b.take();
}

Compiled compiledWith(const OptimizerConfig& config, std::string_view profile = "portable", int64_t batch = 64) {
  CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.optimizer = config;
  options.disabled = {"mergeDispatches"};  // every kernel counts
  return compile(layers(4, batch), options).orThrow();
}
size_t copies(const Compiled& compiled) {
  size_t count = 0;
  for (const program::Command& command : compiled.program.commands) count += std::holds_alternative<program::Copy>(command.action) ? 1 : 0;
  return count;
}

/// The gradient has as many elements as the flat states, and is packed: the update reads it from storage.
TEST(OptimizerCost, gradient_of_one_whole_row_is_made_before_the_update) {
  Builder b;
  auto leaf = [&](const char* op, const char* name) {
    return b.make(op, {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{1, 64}}});
  };
  b.mutableGraph().parameters.push_back({"w", {DType::F32, Shape{1, 64}}, true});
  ValueId x = leaf("input", "x"), w = leaf("parameter", "w");
  ValueId square = b.mul(w, w);
  ValueId sum = b.make("sum", {b.mul(square, x)}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
  b.output(OutputKind::Loss, "loss", sum);
  CompileOptions options;
  options.optimizer = OptimizerConfig{};
  Compiled compiled = compile(b.take(), options).orThrow();
  EXPECT_TRUE(program::validate(compiled.program).ok());
}

TEST(OptimizerCost, guard_and_groups_take_no_dispatch_and_no_level) {
  OptimizerConfig config{.kind = OptimizerKind::AdamW, .weight_decay = 0.1, .clip_grad_norm = 1, .skip_non_finite = false};
  Compiled plain = compiledWith(config);
  config.skip_non_finite = true;
  config.parameters["w1"] = {.weight_decay = 0.5};
  Compiled guarded = compiledWith(config);
  EXPECT_EQ(guarded.plan.dispatches, plain.plan.dispatches);
  EXPECT_EQ(guarded.plan.levels, plain.plan.levels);
  EXPECT_EQ(copies(guarded), 0u);
}

TEST(OptimizerCost, norm_takes_the_dispatches_of_a_clipped_one) {
  OptimizerConfig config{.kind = OptimizerKind::AdamW, .clip_grad_norm = 1};
  Compiled clipped = compiledWith(config);
  config.check_gradients = true;
  EXPECT_EQ(compiledWith(config).plan.dispatches, clipped.plan.dispatches);
  config.clip_grad_norm = 0;
  EXPECT_LE(compiledWith(config).plan.dispatches, clipped.plan.dispatches);
}

TEST(OptimizerCost, frozen_parameters_save_kernels_and_moments) {
  OptimizerConfig config;
  Compiled all = compiledWith(config);
  config.parameters = {{"w0", {.frozen = true}}, {"w1", {.frozen = true}}};
  Compiled half = compiledWith(config);
  // Products for the gradients of two weights, and of the activations between and behind them.
  EXPECT_LE(half.plan.dispatches + 3, all.plan.dispatches);
  // Two of m, v and the gradients each.
  EXPECT_LE(half.plan.total_bytes + 3 * 2 * 64 * 64 * 4, all.plan.total_bytes);
  EXPECT_EQ(copies(half), 0u);
}

TEST(OptimizerCost, frozen_parameters_in_between_cut_the_update_in_two) {
  for (const program::DeviceProfile& profile : program::namedProfiles()) {
    OptimizerConfig config;
    config.parameters = {{"w1", {.frozen = true}}};
    Compiled cut = compiledWith(config, profile.name);
    EXPECT_TRUE(program::validate(cut.program).ok()) << profile.name;
    if (profile.name != "portable") continue;
    EXPECT_EQ(copies(cut), 0u);
    const auto writesParameters = [&](const program::Range& range) {
      return range.access != kernel::Access::Read && cut.program[range.buffer].name == kParameterState;
    };
    const auto updates = std::ranges::count_if(
        cut.program.commands, [&](const auto& command) { return std::ranges::any_of(accesses(command), writesParameters); });
    EXPECT_EQ(updates, 2);
    // Each waits for its own gradients, and not for those on the other side of what is frozen.
    EXPECT_LE(cut.program.levelCount(), compiledWith({}, profile.name).program.levelCount());
  }
}

TEST(OptimizerCost, accumulation_takes_less_memory_than_the_whole_batch) {
  OptimizerConfig config;
  Compiled whole = compiledWith(config, "portable", 1024);
  Compiled once = compiledWith(config, "portable", 128);
  config.accumulate = 8;
  Compiled parts = compiledWith(config, "portable", 128);
  // One more flat state, and an eighth of the activations.
  EXPECT_LT(parts.plan.total_bytes, whole.plan.total_bytes / 2);
  EXPECT_EQ(parts.plan.dispatches, once.plan.dispatches);
  EXPECT_EQ(copies(parts), 0u);
}

TEST(OptimizerCost, everything_at_once_fits_every_profile) {
  OptimizerConfig config{
      .kind = OptimizerKind::AdamW, .weight_decay = 0.1, .clip_grad_value = 1, .clip_grad_norm = 1, .ema_decay = 0.99, .accumulate = 2};
  config.parameters = {{"w0", {.frozen = true}}, {"w1", {.lr_factor = 0.5, .weight_decay = 0.5, .normalize = true}}};
  for (const program::DeviceProfile& profile : program::namedProfiles()) {
    Compiled compiled = compiledWith(config, profile.name);
    auto valid = program::validate(compiled.program);
    EXPECT_TRUE(valid.ok()) << profile.name << ": " << toString(valid.diagnostics());
  }
}

}  // namespace
}  // namespace lockstep::passes
