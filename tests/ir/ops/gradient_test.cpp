// SPDX-License-Identifier: Apache-2.0
// First and second gradients of every case against central differences of the f64 evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "passes/graph/grad.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

constexpr double kStep = 1e-5;
/// Truncation (step^2 times the third derivative) and cancellation (2^-53 of the value over the step) are each below 1e-9 here.
constexpr double kTolerance = 2e-7;

std::vector<std::string> floatLeaves(const LeafValues& leaves) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : leaves) {
    if (tensor.type.dtype == DType::F32 && name.starts_with("operand")) names.push_back(name);
  }
  return names;
}

/// The sum of result * weight over the float results, as the loss. Earlier outputs go.
void setLoss(Builder& builder, const std::vector<ValueId>& values, const std::string& prefix, LeafValues& leaves, std::mt19937& random) {
  ValueId loss;
  for (size_t i = 0; i < values.size(); ++i) {
    if (builder.typeOf(values[i]).dtype != DType::F32) continue;
    ValueId term = weightedSum(builder, values[i], fmt::format("{}{}", prefix, i), leaves, random);
    loss = loss.valid() ? builder.add(loss, term) : term;
  }
  builder.mutableGraph().outputs.clear();
  builder.output(OutputKind::Loss, "loss", loss);
}

/// Outputs of `graph` are the loss and one gradient per name; compares them with differences of the loss.
void checkGradients(const Graph& graph, const LeafValues& leaves, const std::vector<std::string>& names, std::mt19937& random) {
  std::vector<Tensor> outputs = run(graph, leaves);
  ASSERT_EQ(outputs.size(), names.size() + 1);
  auto lossAlong = [&](const LeafValues& direction, double step) {
    LeafValues moved = leaves;
    for (const auto& [name, d] : direction) {
      for (size_t i = 0; i < d.data.size(); ++i) moved.at(name).data[i] += step * d.data[i];
    }
    return run(graph, moved).front().data.front();
  };
  auto check = [&](const LeafValues& direction, const std::string& what) {
    double expected = (lossAlong(direction, kStep) - lossAlong(direction, -kStep)) / (2 * kStep);
    double actual = 0, magnitude = std::abs(outputs[0].data[0]);
    for (size_t n = 0; n < names.size(); ++n) {
      auto found = direction.find(names[n]);
      if (found == direction.end()) continue;
      for (size_t i = 0; i < found->second.data.size(); ++i) {
        double term = found->second.data[i] * outputs[n + 1].data[i];
        actual += term;
        magnitude += std::abs(term);
      }
    }
    EXPECT_NEAR(actual, expected, kTolerance * std::max(1.0, magnitude)) << what;
  };

  int64_t elements = 0;
  for (size_t n = 0; n < names.size(); ++n) {
    ASSERT_EQ(outputs[n + 1].type, leaves.at(names[n]).type) << names[n];
    elements += static_cast<int64_t>(leaves.at(names[n]).data.size());
  }
  for (int trial = 0; trial < 3; ++trial) {
    LeafValues direction;
    for (const std::string& name : names) direction.emplace(name, randomTensor(leaves.at(name).type, -1, 1, random));
    check(direction, fmt::format("along random direction {}", trial));
  }
  if (elements > 64) return;
  for (const std::string& name : names) {
    Tensor unit{leaves.at(name).type, std::vector<double>(leaves.at(name).data.size(), 0.0)};
    for (size_t i = 0; i < unit.data.size(); ++i) {
      unit.data[i] = 1;
      check({{name, unit}}, fmt::format("{}[{}]", name, i));
      unit.data[i] = 0;
    }
  }
}

class GradientCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(GradientCase, Gradient_MatchesCentralDifferencesTwice) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case, 7);
  std::vector<std::string> names = floatLeaves(made.leaves);
  if (names.empty() || made.builder.typeOf(made.results.front()).dtype != DType::F32) return;  // an integer case of a numeric op
  std::mt19937 random(11);
  setLoss(made.builder, made.results, "weight", made.leaves, random);
  Result<Graph> first = passes::grad(made.builder.graph(), {.wrt = names});
  ASSERT_TRUE(first.ok()) << toString(first.diagnostics());
  Graph plain = *first;  // a gradient output belongs to a parameter, and these are inputs
  for (Output& output : plain.outputs) output.kind = OutputKind::Result;
  Status valid = validate(plain);
  ASSERT_TRUE(valid.ok()) << toString(valid.diagnostics());
  checkGradients(*first, made.leaves, names, random);

  std::vector<ValueId> gradients;
  for (const Output& output : first->outputs) {
    if (output.kind == OutputKind::Gradient) gradients.push_back(output.value);
  }
  Builder builder(*first);
  setLoss(builder, gradients, "second", made.leaves, random);
  // By the weights too: the gradient is linear in the cotangent, so this is never trivially zero.
  names.emplace_back("weight0");
  Result<Graph> second = passes::grad(builder.graph(), {.wrt = names});
  ASSERT_TRUE(second.ok()) << toString(second.diagnostics());
  checkGradients(*second, made.leaves, names, random);
}

INSTANTIATE_TEST_SUITE_P(Op, GradientCase, ::testing::ValuesIn(namedCases([](const OpDef& op) {
                           return !std::holds_alternative<NotDifferentiable>(*op.gradient);
                         })),
                         [](const auto& info) { return info.param.name(); });

/// The op's own gradient and the gradient of its decomposition are the same function.
class DecomposedGradientCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(DecomposedGradientCase, Gradient_EqualsThatOfTheDecomposition) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case, 3);
  Node node = made.builder.graph().definition(made.results.front());
  std::vector<ValueId> parts = std::get<DecomposeLowering>(*GetParam().op->lower).decompose(made.builder, node, made.operands);
  std::vector<std::string> names = floatLeaves(made.leaves);
  if (names.empty() || made.builder.typeOf(made.results.front()).dtype != DType::F32) return;  // an integer case of a numeric op
  std::vector<std::vector<Tensor>> gradients;
  for (const std::vector<ValueId>& values : {made.results, parts}) {
    Builder builder(made.builder.graph());
    LeafValues leaves = made.leaves;
    std::mt19937 random(5);
    setLoss(builder, values, "weight", leaves, random);
    Result<Graph> graph = passes::grad(builder.graph(), {.wrt = names});
    ASSERT_TRUE(graph.ok()) << toString(graph.diagnostics());
    gradients.push_back(run(*graph, leaves));
  }
  for (size_t n = 0; n < gradients[0].size(); ++n) {
    for (size_t i = 0; i < gradients[0][n].data.size(); ++i) ASSERT_NEAR(gradients[0][n].data[i], gradients[1][n].data[i], 1e-10);
  }
}

INSTANTIATE_TEST_SUITE_P(Op, DecomposedGradientCase, ::testing::ValuesIn(namedCases([](const OpDef& op) {
                           return std::holds_alternative<DecomposeLowering>(*op.lower);
                         })),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace lockstep::graph::testing
