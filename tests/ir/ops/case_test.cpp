// SPDX-License-Identifier: Apache-2.0
// Every case of every op: evaluate runs, and the lowerings that are data or graphs (view, contraction, decomposition) mean the same.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

class Case : public ::testing::TestWithParam<NamedCase> {};

TEST_P(Case, Evaluate_GivesTheInferredTypes) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  for (ValueId result : made.results) made.builder.output(OutputKind::Result, "y", result);
  std::vector<Tensor> results = run(made.builder.graph(), made.leaves);
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorType& type = made.builder.typeOf(made.results[i]);
    EXPECT_EQ(results[i].type, type);
    ASSERT_EQ(results[i].data.size(), static_cast<size_t>(type.shape.elementCount()));
    for (double value : results[i].data) {
      // What a packed float cannot hold is infinite.
      ASSERT_TRUE(std::isfinite(value) || (isPacked(type.dtype) && !std::isnan(value)));
      if (type.dtype == DType::Bool) {
        ASSERT_TRUE(value == 0 || value == 1);
      }
      if (!isFloat(type.dtype)) {
        ASSERT_EQ(value, std::trunc(value));
      }
    }
  }
}

TEST_P(Case, Graph_IsValidAndSurvivesItsText) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  made.builder.output(OutputKind::Result, "y", made.results.front());
  const Graph& graph = made.builder.graph();
  Status valid = validate(graph);
  ASSERT_TRUE(valid.ok()) << toString(valid.diagnostics());
  Result<Graph> read = parse(print(graph));
  ASSERT_TRUE(read.ok()) << toString(read.diagnostics());
  EXPECT_EQ(*read, canonical(graph));
}

INSTANTIATE_TEST_SUITE_P(Op, Case, ::testing::ValuesIn(namedCases([](const OpDef&) { return true; })),
                         [](const auto& info) { return info.param.name(); });

/// Row-major position of an index.
size_t flatten(const std::vector<int64_t>& index, const Shape& shape) {
  std::vector<int64_t> strides = shape.strides();
  int64_t flat = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    EXPECT_GE(index[axis], 0);
    EXPECT_LT(index[axis], shape.extent(axis));
    flat += index[axis] * strides[axis];
  }
  return static_cast<size_t>(flat);
}

std::vector<int64_t> unflatten(int64_t flat, const Shape& shape) {
  std::vector<int64_t> index;
  for (int64_t stride : shape.strides()) {
    index.push_back(flat / stride);
    flat %= stride;
  }
  return index;
}

std::vector<int64_t> sourceOf(const IndexMap& map, const std::vector<int64_t>& index) {
  std::vector<int64_t> source;
  for (const IndexExpr& expr : map.source) source.push_back(evaluate(expr, index));
  return source;
}

class ViewCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(ViewCase, Map_GivesWhatEvaluateGives) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  made.builder.output(OutputKind::Result, "y", made.results.front());
  const Graph& graph = made.builder.graph();
  Tensor expected = run(graph, made.leaves).front();
  const Tensor& x = made.leaves.at("operand0");
  IndexMap map = std::get<ViewLowering>(*GetParam().op->lower).map(graph, graph.definition(made.results.front()));
  for (int64_t i = 0; i < expected.type.shape.elementCount(); ++i) {
    std::vector<int64_t> index = unflatten(i, expected.type.shape);
    bool inside = true;
    for (const IndexGuard& guard : map.guards) {
      int64_t at = evaluate(guard.expr, index);
      inside = inside && at >= guard.lo && at < guard.hi;
    }
    double value = inside ? x.data[flatten(sourceOf(map, index), x.type.shape)] : map.fill;
    ASSERT_EQ(value, expected.data[static_cast<size_t>(i)]) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Op, ViewCase,
                         ::testing::ValuesIn(namedCases([](const OpDef& op) { return std::holds_alternative<ViewLowering>(*op.lower); })),
                         [](const auto& info) { return info.param.name(); });

class ContractCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(ContractCase, Shape_GivesWhatEvaluateGives) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  made.builder.output(OutputKind::Result, "y", made.results.front());
  const Graph& graph = made.builder.graph();
  Tensor expected = run(graph, made.leaves).front();
  const Tensor &a = made.leaves.at("operand0"), &b = made.leaves.at("operand1");
  ContractShape shape = std::get<ContractLowering>(*GetParam().op->lower).shape(graph, graph.definition(made.results.front()));
  ASSERT_EQ(shape.batch * shape.m * shape.n, expected.type.shape.elementCount());
  // A few results of each case, spread over all of it.
  int64_t count = shape.batch * shape.m * shape.n, step = std::max<int64_t>(1, count / 97);
  for (int64_t i = 0; i < count; i += step) {
    int64_t batch = i / (shape.m * shape.n), m = i / shape.n % shape.m, n = i % shape.n;
    double sum = 0;
    for (int64_t k = 0; k < shape.k; ++k) {
      sum +=
          a.data[flatten(sourceOf(shape.a, {batch, m, k}), a.type.shape)] * b.data[flatten(sourceOf(shape.b, {batch, k, n}), b.type.shape)];
    }
    ASSERT_NEAR(sum, expected.data[static_cast<size_t>(i)], 1e-9) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Op, ContractCase, ::testing::ValuesIn(namedCases([](const OpDef& op) {
                           return std::holds_alternative<ContractLowering>(*op.lower);
                         })),
                         [](const auto& info) { return info.param.name(); });

class DecomposeCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(DecomposeCase, Decomposition_GivesWhatEvaluateGives) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  Node node = made.builder.graph().definition(made.results.front());
  std::vector<ValueId> parts = std::get<DecomposeLowering>(*GetParam().op->lower).decompose(made.builder, node, made.operands);
  ASSERT_EQ(parts.size(), made.results.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(made.builder.typeOf(parts[i]), made.builder.typeOf(made.results[i]));
    made.builder.output(OutputKind::Result, "whole", made.results[i]);
    made.builder.output(OutputKind::Result, "parts", parts[i]);
  }
  std::vector<Tensor> values = run(made.builder.graph(), made.leaves);
  for (size_t result = 0; result < values.size(); result += 2) {
    const std::vector<double>&whole = values[result].data, &composed = values[result + 1].data;
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(whole[i], composed[i], 1e-11 * std::max(1.0, std::abs(whole[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Op, DecomposeCase, ::testing::ValuesIn(namedCases([](const OpDef& op) {
                           return std::holds_alternative<DecomposeLowering>(*op.lower);
                         })),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace lockstep::graph::testing
