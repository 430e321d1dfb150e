// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/kernel/kernel_pipeline.h"
#include "passes/pipeline.h"
#include "passes/schedule/command_order.h"
#include "tests/generated_text.h"

namespace lockstep::passes {
namespace {

using namespace graph;

/// relu(x w + b) against y, mean of squares.
Graph tinyModel() {
  Builder b;
  auto leaf = [&](const char* op, const char* name, Shape shape) {
    ValueId value = b.make(op, {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", shape.extents()}});
    b.name(value, name);
    if (std::string_view(op) == "parameter") b.mutableGraph().parameters.push_back({name, {DType::F32, shape}, true});
    return value;
  };
  ValueId x = leaf("input", "x", {8, 3}), y = leaf("input", "y", {8, 5});
  ValueId w = leaf("parameter", "w", {3, 5}), c = leaf("parameter", "c", {5});
  ValueId h = b.make("relu", {b.add(b.make("matmul", {x, w}), c)});
  ValueId d = b.sub(h, y);
  ValueId sum = b.make("sum", {b.mul(d, d)}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
  b.output(OutputKind::Loss, "loss", b.mul(sum, 1.0 / 40));
  return b.take();
}

CompileOptions training() {
  CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  options.optimizer = OptimizerConfig{};
  return options;
}

TEST(Pipeline, training_step_is_valid_for_every_named_profile) {
  for (const program::DeviceProfile& profile : program::namedProfiles()) {
    CompileOptions options = training();
    options.profile = profile;
    auto compiled = compile(tinyModel(), options);
    ASSERT_TRUE(compiled.ok()) << profile.name << ": " << toString(compiled.diagnostics());
    EXPECT_TRUE(program::validate(compiled->program).ok()) << profile.name;
  }
}

TEST(Pipeline, optimizer_is_one_dispatch) {
  Compiled compiled = compile(tinyModel(), training()).orThrow();
  uint32_t last = compiled.program.commands.back().level;
  size_t in_last_level = 0;
  for (const program::Command& command : compiled.program.commands) in_last_level += command.level == last ? 1 : 0;
  EXPECT_EQ(in_last_level, 1u);
  EXPECT_NE(compiled.program.commands.back().label.find("sqrt"), std::string::npos);
}

TEST(Pipeline, program_text_parses_back) {
  Compiled compiled = compile(tinyModel(), training()).orThrow();
  std::string text = program::print(compiled.program);
  EXPECT_EQ(program::parse(text).orThrow(), program::canonical(compiled.program));
}

/// x w w w w: each product is needed only by the next one.
Graph chainOfProducts(int length) {
  Builder b;
  auto input = [&](const char* name) {
    return b.make("input", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{16, 16}}});
  };
  ValueId value = input("x"), w = input("w");
  for (int i = 0; i < length; ++i) value = b.make("matmul", {value, w});
  b.output(OutputKind::Result, "y", value);
  return b.take();
}

TEST(Pipeline, unshared_plan_gives_every_buffer_its_own_bytes) {
  CompileOptions options;
  Compiled shared = compile(chainOfProducts(5), options).orThrow();
  options.disabled = {"planBuffers"};
  Compiled plain = compile(chainOfProducts(5), options).orThrow();
  EXPECT_EQ(plain.plan.workspace_bytes, 4u * 1024);  // the fifth product is the output
  EXPECT_EQ(plain.plan.workspace_bytes, plain.plan.unpooled_bytes);
  EXPECT_LT(shared.plan.workspace_bytes, plain.plan.workspace_bytes);
  EXPECT_EQ(shared.plan.workspace_bytes, 2u * 1024);
}

/// The sum of exp(x) w over `branches` branches: all of them can run at a time.
Graph branches(int count) {
  Builder b;
  auto input = [&](const std::string& name) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{16, 16}}});
  };
  ValueId x = input("x"), w = input("w"), sum;
  for (int i = 0; i < count; ++i) {
    ValueId narrow = b.make("sum", {b.make("matmul", {b.make("matmul", {x, input(fmt::format("w{}", i))}), w})},
                            {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
    sum = i == 0 ? narrow : b.add(sum, narrow);
  }
  b.output(OutputKind::Result, "y", sum);
  return b.take();
}

TEST(Pipeline, memory_limit_trades_levels_for_bytes) {
  CompileOptions options;
  options.disabled = {"mergeDispatches"};  // it finds fewer to merge in more levels
  PlanSummary free = compile(branches(8), options).orThrow().plan;
  options.memory_limit = 8192;
  PlanSummary limited = compile(branches(8), options).orThrow().plan;
  EXPECT_GE(free.workspace_bytes, 16u * 1024);  // both products of every branch
  EXPECT_LE(limited.workspace_bytes, 8192u);
  EXPECT_GT(limited.levels, free.levels);
  EXPECT_EQ(limited.dispatches, free.dispatches);
}

TEST(Pipeline, order_without_a_limit_is_the_schedule) {
  for (const Graph& graph : {tinyModel(), chainOfProducts(3), branches(5)}) {
    CompileOptions options = training();
    std::vector<std::string> names{"grad", "optimizer", "decompose", "simplify", "fuse", "schedule"};
    if (graph.parameters.empty()) names.erase(names.begin(), names.begin() + 2);
    auto scheduled = std::get<program::Program>(runPasses(graph, names, options).orThrow());
    EXPECT_EQ(orderCommands(scheduled, UINT64_MAX), scheduled);
    program::Program serial = orderCommands(scheduled, 0);
    EXPECT_EQ(serial.levelCount(), serial.commands.size());
    EXPECT_EQ(serial.commands.size(), scheduled.commands.size());
  }
}

TEST(Pipeline, memory_limit_that_is_not_needed_changes_nothing) {
  CompileOptions options;
  Compiled free = compile(branches(3), options).orThrow();
  options.memory_limit = free.plan.workspace_bytes;
  EXPECT_EQ(compile(branches(3), options).orThrow().program, free.program);
}

TEST(Pipeline, memory_limit_is_an_error_that_names_the_largest_buffers) {
  CompileOptions options;
  options.memory_limit = 1024;
  auto compiled = compile(chainOfProducts(3), options);
  ASSERT_FALSE(compiled.ok());
  const Diagnostic& problem = compiled.diagnostics().front();
  EXPECT_EQ(problem.code, "planBuffers.memory");
  EXPECT_EQ(problem.message.substr(0, 62), "the workspace needs 2048 bytes and the limit is 1024; the larg") << problem.message;
  EXPECT_NE(problem.message.find("(1024 bytes)"), std::string::npos);
  EXPECT_FALSE(problem.remedy.empty());
}

TEST(Pipeline, unknown_pass_is_refused_with_the_known_ones) {
  CompileOptions options = training();
  options.disabled = {"fusion"};
  auto compiled = compile(tinyModel(), options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics().front().code, "pipeline.pass");
  EXPECT_NE(compiled.diagnostics().front().remedy.find("simplify"), std::string::npos);
  EXPECT_FALSE(runPasses(tinyModel(), {"nothing"}, training()).ok());
}

TEST(Pipeline, pass_on_the_other_form_is_refused) {
  auto early = runPasses(tinyModel(), {"planBuffers"}, training());
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.diagnostics().front().code, "pipeline.stage");
  auto late = runPasses(tinyModel(), {"grad", "optimizer", "decompose", "fuse", "schedule", "simplify"}, training());
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.diagnostics().front().message, "pass 'simplify' takes what is 'primitive', and this is a scheduled program");
  EXPECT_EQ(late.diagnostics().front().remedy, "run 'decompose' before it ('lockstep opt --list')");
}

/// An input with a softmax, and a product, so that every stage has something that the ones before lack.
Graph softmaxOfProduct() {
  Builder b;
  const ValueId x = b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{4, 4}}});
  b.output(OutputKind::Result, "y", b.make("softmax", {b.make("matmul", {x, x})}));
  return b.take();
}

TEST(Stages, forms_of_other_stages_are_told_apart) {
  const std::vector<std::string> all{"bindParameters", "decompose", "fuse", "schedule", "planBuffers", "emit"};
  const auto after = [&](size_t count) {
    return runPasses(Form(softmaxOfProduct()), {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)}, {}).orThrow();
  };
  const std::array<Stage, 7> reached{Stage::Traced,    Stage::Updated, Stage::Primitive, Stage::Grouped,
                                     Stage::Scheduled, Stage::Planned, Stage::Emitted};
  for (size_t i = 0; i < reached.size(); ++i) EXPECT_EQ(illegalAt(reached[i], after(i)), "") << toString(reached[i]);
  EXPECT_EQ(illegalAt(Stage::Primitive, after(1)), "holds 'softmax', which stands for other ops");
  EXPECT_EQ(illegalAt(Stage::Grouped, after(2)), "holds 'matmul', which has to be in a group");
  EXPECT_EQ(illegalAt(Stage::Primitive, after(3)), "holds 'group', which is for later passes");
  EXPECT_EQ(illegalAt(Stage::Scheduled, after(3)), "is a graph");
  EXPECT_EQ(illegalAt(Stage::Grouped, after(4)), "is a scheduled program");
  EXPECT_NE(illegalAt(Stage::Planned, after(4)).find("has no place"), std::string::npos);
  EXPECT_NE(illegalAt(Stage::Emitted, after(5)).find("is only planned"), std::string::npos);
  EXPECT_EQ(stageOf(std::get<program::Program>(after(4))), Stage::Scheduled);
  EXPECT_EQ(stageOf(std::get<program::Program>(after(5))), Stage::Planned);
  EXPECT_EQ(stageOf(std::get<program::Program>(after(6))), Stage::Emitted);
}

TEST(Stages, a_pass_says_what_it_cannot_take) {
  const auto early = runPasses(Form(softmaxOfProduct()), {"bindParameters", "fuse"}, {});
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.diagnostics().front().code, "pipeline.stage");
  EXPECT_EQ(early.diagnostics().front().message,
            "pass 'fuse' takes what is 'primitive', and this holds 'softmax', which stands for other ops");
}

// Every pass takes what the passes before it leave, whichever of them run.
TEST(Stages, passes_follow_each_other) {
  std::set<Stage> reached{Stage::Traced};
  for (const PassInfo& pass : listPasses()) {
    EXPECT_TRUE(std::ranges::any_of(reached, [&](Stage stage) { return pass.before.has(stage); })) << pass.name;
    EXPECT_GE(pass.after, pass.before.last) << pass.name;
    reached.insert(pass.after);
  }
  EXPECT_EQ(reached.size(), stageRules().size());
}

TEST(Pipeline, output_that_is_read_again_is_copied_where_a_buffer_has_one_use_at_a_time) {
  Builder b;
  auto input = [&](const char* name) {
    return b.make("input", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{16, 16}}});
  };
  ValueId x = input("x"), w = input("w"), first = b.make("matmul", {x, w});
  b.output(OutputKind::Result, "first", first);
  b.output(OutputKind::Result, "second", b.make("matmul", {first, w}));
  b.output(OutputKind::Result, "again", first);
  Graph graph = b.take();
  CompileOptions options;
  EXPECT_EQ(compile(graph, options).orThrow().plan.dispatches, 3u);
  options.profile = program::findProfile("webgpu_default").orThrow();
  Compiled compiled = compile(graph, options).orThrow();  // it is validated
  EXPECT_EQ(compiled.plan.dispatches, 4u);
}

/// y = exp(x) or x w, with x of 64 x `columns`.
Graph oneOp(const char* name, int64_t columns) {
  Builder b;
  b.setLocation(b.addLocation({.file = "model.cpp", .line = 7, .column = 3}));
  auto input = [&](const char* input_name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", std::string(input_name)}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  std::vector<ValueId> operands{input("big", {64, columns})};
  if (std::string_view(name) == "matmul") operands.push_back(input("w", {columns, 2}));
  b.output(OutputKind::Result, "y", b.make(name, operands));
  return b.take();
}

TEST(Pipeline, flat_dispatch_above_the_binding_limit_runs_in_slices) {
  CompileOptions options;
  options.profile = program::findProfile("small_bindings").orThrow();
  options.disabled = {"mergeDispatches"};
  Compiled compiled = compile(oneOp("exp", 1024), options).orThrow();
  EXPECT_EQ(compiled.plan.dispatches, 4u);
  EXPECT_EQ(compiled.plan.levels, 1u);
  EXPECT_EQ(compiled.plan.distinct_kernels, 1u);
  compiled = compile(oneOp("exp", 1280), options).orThrow();
  EXPECT_EQ(compiled.plan.dispatches, 6u);
  EXPECT_EQ(compiled.plan.distinct_kernels, 2u);  // the last slice is shorter
  options.disabled = {};
  EXPECT_EQ(compile(oneOp("exp", 1280), options).orThrow().plan.dispatches,
            3u);  // four slices in eight bindings, one, and the last with smaller workgroups
}

TEST(Pipeline, limits_of_a_profile_are_its_own_and_not_those_of_its_name) {
  CompileOptions options;
  options.profile = program::findProfile("small_bindings").orThrow();
  options.profile.max_binding_bytes = 1 << 20;
  options.disabled = {"mergeDispatches"};
  const Compiled compiled = compile(oneOp("exp", 1024), options).orThrow();
  EXPECT_EQ(compiled.plan.dispatches, 1u);
  EXPECT_EQ(compiled.program.profile.max_binding_bytes, 1u << 20);
  EXPECT_TRUE(program::validate(compiled.program).ok());
  options.profile.max_binding_bytes = 32 << 10;
  EXPECT_EQ(compile(oneOp("exp", 1024), options).orThrow().plan.dispatches, 8u);
}

TEST(Pipeline, product_with_an_operand_above_the_binding_limit_binds_windows) {
  CompileOptions options;
  options.profile = program::findProfile("small_bindings").orThrow();
  options.disabled = {"splitReductions"};
  Compiled compiled = compile(oneOp("matmul", 1024), options).orThrow();
  ASSERT_EQ(compiled.plan.dispatches, 1u);
  // 256 KiB in windows of 64 KiB, the other operand and the result.
  EXPECT_EQ(std::get<program::Dispatch>(compiled.program.commands.front().action).bindings.size(), 6u);
}

size_t dispatchesOfProduct(int64_t inner, uint32_t max_loop_iterations) {
  CompileOptions options;
  options.profile = program::findProfile("cpu").orThrow();
  options.profile.max_loop_iterations = max_loop_iterations;
  Builder b;
  auto input = [&](const char* name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  b.output(OutputKind::Result, "y", b.make("matmul", {input("a", {3, inner}), input("b", {inner, 2})}));
  return compile(b.take(), options).orThrow().plan.dispatches;
}

TEST(Pipeline, inner_axis_longer_than_the_loops_of_the_device_is_split) {
  EXPECT_EQ(dispatchesOfProduct(50'021, 0), 1u);
  EXPECT_EQ(dispatchesOfProduct(50'021, 65'535), 1u);
  EXPECT_EQ(dispatchesOfProduct(300'007, 65'535), 2u);  // a prime: the last part is filled up
}

TEST(Pipeline, tensor_beyond_all_bindings_is_named) {
  CompileOptions options;
  options.profile = program::findProfile("small_bindings").orThrow();
  auto compiled = compile(oneOp("matmul", 2047), options);
  ASSERT_FALSE(compiled.ok());
  const Diagnostic& problem = compiled.diagnostics().front();
  EXPECT_EQ(problem.code, "splitDispatches.binding");
  EXPECT_EQ(problem.message,
            "tensor 'big' takes 524032 bytes and the device binds at most 65536; 'matmul' would need 10 bindings of that size and a kernel "
            "has 8");
  EXPECT_EQ(problem.where.line, 7u);
  EXPECT_FALSE(problem.remedy.empty());
}

TEST(Grad, loss_that_is_no_scalar_is_refused) {
  Builder b;
  ValueId x = b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{3}}});
  b.output(OutputKind::Loss, "loss", x);
  auto result = runPasses(b.take(), {"grad"}, training());
  ASSERT_FALSE(result.ok());
}

// passes/README.md has two tables that are made from the pipelines.
TEST(Pipeline, readme_tables_golden) {
  std::filesystem::path path = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "passes/README.md";
  std::string passes = "| pass | from | to | what it does | `--disable-pass` |\n|---|---|---|---|---|\n";
  static constexpr std::array<std::string_view, 3> kDisabling{"refused", "left out", "plain form"};
  for (const PassInfo& info : listPasses()) {
    passes += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.name, toString(info.before), toString(info.after), info.summary,
                          kDisabling[static_cast<size_t>(info.disabling)]);
  }
  lockstep::testing::expectGeneratedText(path, passes);
  std::string kernel_passes = "| kernel pass | what it does |\n|---|---|\n";
  for (const KernelPassInfo& info : listKernelPasses()) kernel_passes += fmt::format("| `{}` | {} |\n", info.name, info.summary);
  lockstep::testing::expectGeneratedText(path, kernel_passes, "kernel table");
}

/// The graph may be a text that somebody wrote, so what its kernels say of themselves counts for nothing.
TEST(Pipeline, claims_of_kernels_are_dropped) {
  constexpr const char* kKernel = R"(lockstep.kernel 1
var @source: array<u32, 1> {access = read, binding = 0, group = 0, space = storage}
var @target: array<u32, 1> {access = read_write, binding = 1, group = 0, space = storage}
var @shared: array<u32, 4> {initial = none, space = workgroup}
fn @main() {workgroup_size = [1, 1, 1]} {
  %0: ptr<storage, u32, read> = access @source, 0u
  %1: u32 = load %0
  %2: ptr<workgroup, u32> = access @shared, %1 {in_bounds = true}
  %3: u32 = load %2
  %4: ptr<storage, u32, read_write> = access @target, 0u
  store %4, %3
  return
}
)";
  Builder b;
  const ValueId x = b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::U32}, {"shape", std::vector<int64_t>{1}}});
  const ValueId y = b.make("kernel", {x},
                           {{"module", std::string(kKernel)},
                            {"label", std::string("claims")},
                            {"results", std::string("u32[1]")},
                            {"groups", std::vector<int64_t>{1, 1, 1}}});
  b.output(OutputKind::Result, "y", y);
  const Form scheduled = runPasses(Form(b.take()), {"schedule"}, {}).orThrow();
  const std::string text = print(scheduled);
  EXPECT_NE(text.find("var @shared"), std::string::npos) << text;
  EXPECT_EQ(text.find("in_bounds"), std::string::npos) << text;
  EXPECT_EQ(text.find("initial = none"), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::passes
