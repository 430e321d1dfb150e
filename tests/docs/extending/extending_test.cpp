// SPDX-License-Identifier: Apache-2.0
// docs/extending.md: the page quotes the files of this folder, and the op, the pass and the template of the examples work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/ops/element.h"
#include "frontend/train/function.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "passes/graph/grad.h"
#include "tests/differential/compare.h"
#include "tests/docs/page.h"
#include "tests/ir/ops/op_case.h"
#include "tests/passes/golden_case.h"

namespace lockstep {
namespace {

using graph::testing::buildCase;
using graph::testing::CaseGraph;

constexpr const char* kFolder = LOCKSTEP_SOURCE_DIR "/tests/docs/extending/";

struct Quote {
  const char* file;
  const char* language;
};
constexpr std::array kQuotes{
    Quote{"ir/ops/element/softsign.cpp", "cpp"},
    Quote{"passes/graph/use_rsqrt.h", "cpp"},
    Quote{"passes/graph/use_rsqrt.cpp", "cpp"},
    Quote{"useRsqrt.both_uses.txt", ""},
    Quote{"pipeline_row.txt", "cpp"},
    Quote{"shaders/matmul_one_row.wgsl", "wgsl"},
    Quote{"one_row.txt", "cpp"},
    Quote{"choice.txt", "cpp"},
    Quote{"op_row.txt", "cpp"},
    Quote{"unary_op_row.txt", "cpp"},
};

TEST(Extending, page_quotes_files) {
  for (const Quote& quote : kQuotes) {
    const std::string text = *io::readTextFile(std::string(kFolder) + quote.file);
    const std::vector<std::string> blocks = testing::blocksOf(testing::readPage("extending.md"), quote.language);
    EXPECT_NE(std::ranges::find(blocks, text), blocks.end()) << quote.file;
  }
}

TEST(Extending, page_has_no_code_that_is_no_quote) {
  for (const char* language : {"cpp", "wgsl"}) {
    const auto quotes = std::ranges::count_if(kQuotes, [&](const Quote& quote) { return std::string_view(quote.language) == language; });
    EXPECT_EQ(static_cast<size_t>(quotes), testing::blocksOf(testing::readPage("extending.md"), language).size()) << language;
  }
}

/// What tests/ir/ops and tests/differential ask of every op.
TEST(Extending, op_agrees_with_its_evaluator_forward_and_backward) {
  const graph::OpDef& op = graph::op("softsign");
  for (const graph::OpCase& one : (*op.cases)()) {
    CaseGraph made = buildCase(op, one);
    std::mt19937 random(2);
    const graph::ValueId loss = graph::testing::weightedSum(made.builder, made.results[0], "weight", made.leaves, random);
    made.builder.output(graph::OutputKind::Result, "y", made.results[0]);
    made.builder.output(graph::OutputKind::Loss, "loss", loss);
    const GraphRunOptions exact{.gradients = true, .wrt = {"operand0"}};
    const std::vector<graph::Tensor> want = runGraph(made.builder.graph(), made.leaves, exact);
    for (const std::string& device : devicesUnderTest()) {
      GraphRunOptions options = exact;
      options.device = device;
      const std::vector<graph::Tensor> got = runGraph(made.builder.graph(), made.leaves, options);
      // The loss between them is a sum of random signs, which cancel. Limits are those of tests/differential/op_test.cpp.
      expectClose({got.front()}, {want.front()}, one.tolerance, device);
      expectClose({got.back()}, {want.back()}, 4 * one.tolerance + 2e-6, device + ", gradient");
    }
    // The gradient of one element against a central difference.
    const double step = 1e-5, gradient = want.back().data[0];
    const auto lossAt = [&](double moved) {
      graph::LeafValues leaves = made.leaves;
      leaves.at("operand0").data[0] += moved;
      return runGraph(made.builder.graph(), leaves, exact)[1].data[0];
    };
    EXPECT_NEAR((lossAt(step) - lossAt(-step)) / (2 * step), gradient, 1e-7);
  }
}

TEST(Extending, op_is_a_function_of_a_tensor) {
  Function half = function(
      {.inputs = {{"x", TensorType{DType::F32, {1}}}}, .body = [](const Inputs& in) { return softsign(in["x"]); }, .device = "reference"});
  EXPECT_NEAR(half({{"x", std::vector<float>{1}}}).value.floats()[0], 0.5, 1e-6);
}

TEST(Extending, pass_gives_its_golden_text) {
  const passes::GoldenCase golden = passes::readGolden(std::string(kFolder) + "useRsqrt.both_uses.txt");
  const passes::Form input = passes::parseForm(golden.input, "input").orThrow();
  const passes::Form output = passes::runPasses(input, golden.passes, {}).orThrow();
  passes::expectGolden(golden, passes::print(output));
}

passes::Compiled compiled(const graph::Graph& graph, std::vector<std::string> disabled = {}) {
  passes::CompileOptions options;
  options.templates = detail::templateSource();
  options.disabled = std::move(disabled);
  return passes::compile(graph, options).orThrow();
}
bool ran(const passes::Compiled& compiled, std::string_view pass) {
  return std::ranges::any_of(compiled.passes, [&](const passes::PassRecord& record) { return record.name == pass && record.changed; });
}

TEST(Extending, pass_runs_in_the_pipeline_and_can_be_left_out) {
  const passes::GoldenCase golden = passes::readGolden(std::string(kFolder) + "useRsqrt.both_uses.txt");
  const graph::Graph graph = graph::parse(golden.input).orThrow();
  EXPECT_TRUE(ran(compiled(graph), "useRsqrt"));
  EXPECT_FALSE(ran(compiled(graph, {"useRsqrt"}), "useRsqrt"));
  const graph::LeafValues leaves{{"x", {{graph::DType::F32, graph::Shape{4}}, {-1, 0, 0.5, 2}}}};
  for (const std::string& device : devicesUnderTest()) {
    expectClose(runGraph(graph, leaves, {.device = device}), runGraph(graph, leaves), 2e-6, device);
  }
}

TEST(Extending, template_is_chosen_and_right) {
  graph::Builder builder;
  const graph::ValueId a = graph::testing::addInput(builder, "a", {graph::DType::F32, graph::Shape{3, 1, 70}});
  const graph::ValueId b = graph::testing::addInput(builder, "b", {graph::DType::F32, graph::Shape{3, 70, 45}});
  builder.output(graph::OutputKind::Result, "y", builder.make("relu", {builder.make("matmul", {a, b})}));
  const passes::Compiled made = compiled(builder.graph());
  ASSERT_EQ(made.program.kernels.size(), 1u) << "relu is in the store of the product";
  EXPECT_TRUE(made.program.kernels.front().name.ends_with("one_row")) << made.program.kernels.front().name;
  std::mt19937 random(3);
  graph::LeafValues leaves;
  for (const auto& [name, value] : {std::pair{"a", a}, std::pair{"b", b}}) {
    leaves.emplace(name, graph::testing::randomTensor(builder.typeOf(value), -1, 1, random));
  }
  for (const std::string& device : devicesUnderTest()) {
    expectClose(runGraph(builder.graph(), leaves, {.device = device}), runGraph(builder.graph(), leaves), 1e-6, device);
  }
}

}  // namespace
}  // namespace lockstep
