// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/pipeline.h"
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

TEST(Pipeline, unshared_plan_gives_every_buffer_its_own_bytes) {
  CompileOptions options = training();
  options.disabled = {"planBuffers"};
  Compiled plain = compile(tinyModel(), options).orThrow(), shared = compile(tinyModel(), training()).orThrow();
  EXPECT_GE(plain.plan.workspace_bytes, plain.plan.unpooled_bytes);
  EXPECT_LE(shared.plan.workspace_bytes, plain.plan.workspace_bytes);
}

TEST(Pipeline, memory_limit_is_an_error_that_names_the_largest_buffers) {
  CompileOptions options = training();
  options.memory_limit = 16;
  auto compiled = compile(tinyModel(), options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics().front().code, "planBuffers.memory");
}

TEST(Pipeline, unknown_pass_is_refused_with_the_known_ones) {
  CompileOptions options = training();
  options.disabled = {"fusion"};
  auto compiled = compile(tinyModel(), options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics().front().code, "pipeline.pass");
  EXPECT_NE(compiled.diagnostics().front().remedy.find("simplify"), std::string::npos);
  EXPECT_FALSE(runGraphPasses(tinyModel(), {"nothing"}, training()).ok());
}

TEST(Pipeline, tensor_above_the_binding_limit_is_named) {
  Builder b;
  ValueId x = b.make("input", {}, {{"name", std::string("big")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{1 << 15}}});
  b.output(OutputKind::Result, "y", b.make("exp", {x}));
  CompileOptions options;
  options.profile = program::findProfile("small_bindings").orThrow();
  auto compiled = compile(b.take(), options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.diagnostics().front().code, "schedule.binding");
}

TEST(Grad, loss_that_is_no_scalar_is_refused) {
  Builder b;
  ValueId x = b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{3}}});
  b.output(OutputKind::Loss, "loss", x);
  auto result = runGraphPasses(b.take(), {"grad"}, training());
  ASSERT_FALSE(result.ok());
}

// passes/README.md has a table that is made from the pipeline.
TEST(Pipeline, readme_table_golden) {
  std::string table = "| pass | from | to | what it does | `--disable-pass` |\n|---|---|---|---|---|\n";
  static constexpr std::array<std::string_view, 3> kDisabling{"refused", "left out", "plain form"};
  for (const PassInfo& info : listPasses()) {
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.name, info.before, info.after, info.summary,
                         kDisabling[static_cast<size_t>(info.disabling)]);
  }
  lockstep::testing::expectGeneratedText(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "passes/README.md", table);
}

}  // namespace
}  // namespace lockstep::passes
