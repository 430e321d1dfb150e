// SPDX-License-Identifier: Apache-2.0
// Golden texts of passes. Every case also checks that the output is valid, that its text is a fixpoint, that the pass is deterministic
// and, for graphs, that outputs which exist before and after keep their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/graph/evaluate.h"
#include "passes/pipeline.h"
#include "tests/passes/golden_case.h"

namespace lockstep::passes {
namespace {

using namespace graph;
LeafValues someLeaves(const Graph& graph) {
  std::mt19937 random(1);
  LeafValues leaves;
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const Attribute* name = node.attributes.find("name");
    if (!node.operands.empty() || name == nullptr) continue;
    Tensor value{graph.typeOf(node.results[0]), {}};
    for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) {
      double unit = static_cast<double>(random()) / 0x1p32;
      value.data.push_back(value.type.dtype == DType::F32 ? unit - 0.5 : std::floor(unit * 3));
    }
    leaves.emplace(std::get<std::string>(*name), std::move(value));
  }
  return leaves;
}

void expectSameMeaning(const Graph& before, const Graph& after) {
  LeafValues leaves = someLeaves(before);
  for (const auto& [name, value] : someLeaves(after)) leaves.try_emplace(name, value);
  // Bound parameters read the flat state, so it holds what the leaves held.
  if (auto flat = leaves.find("params"); flat != leaves.end()) {
    std::fill(flat->second.data.begin(), flat->second.data.end(), 0.0);
    for (const ParameterLayout::Slot& slot : layoutParameters(before.parameters).slots) {
      if (!leaves.contains(slot.name)) continue;
      const std::vector<double>& data = leaves.find(slot.name)->second.data;
      std::copy(data.begin(), data.end(), flat->second.data.begin() + slot.offset);
    }
  }
  std::vector<Tensor> want = evaluate(before, leaves).orThrow(), got = evaluate(after, leaves).orThrow();
  for (size_t i = 0; i < before.outputs.size(); ++i) {
    for (size_t j = 0; j < after.outputs.size(); ++j) {
      if (before.outputs[i].kind != after.outputs[j].kind || before.outputs[i].name != after.outputs[j].name) continue;
      ASSERT_EQ(want[i].data.size(), got[j].data.size());
      for (size_t e = 0; e < want[i].data.size(); ++e) EXPECT_NEAR(want[i].data[e], got[j].data[e], 1e-12) << before.outputs[i].name;
    }
  }
}

/// Programs are run by other tests, on devices.
void expectSameMeaning(const Form& before, const Form& after) {
  if (std::holds_alternative<Graph>(before) && std::holds_alternative<Graph>(after)) {
    expectSameMeaning(std::get<Graph>(before), std::get<Graph>(after));
  }
}

class Golden : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(Passes, Golden, testing::ValuesIn(goldenFiles("tests/passes/data")),
                         [](const auto& info) { return goldenName(info.param); });

TEST_P(Golden, output_is_as_recorded) {
  GoldenCase golden = readGolden(GetParam());
  Form input = parseForm(golden.input, GetParam().filename().string()).orThrow();
  CompileOptions options;
  options.optimizer = OptimizerConfig{};
  options.profile = program::findProfile(golden.profile).orThrow();
  options.memory_limit = golden.memory_limit;
  Form output = runPasses(input, golden.passes, options).orThrow();
  std::string text = print(output);
  EXPECT_EQ(print(parseForm(text, "output").orThrow()), text) << "the text is no fixpoint";
  EXPECT_EQ(print(runPasses(input, golden.passes, options).orThrow()), text) << "the pass is not deterministic";
  if (golden.passes.back() == "emit") {
    auto valid = program::validate(std::get<program::Program>(output));
    EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics());
  }
  expectSameMeaning(input, output);
  expectGolden(golden, text);
}

}  // namespace
}  // namespace lockstep::passes
