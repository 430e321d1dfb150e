// SPDX-License-Identifier: Apache-2.0
// Every case of every op, forward and gradient, as one program: the f64 evaluator against each device.
#include <gtest/gtest.h>

#include "frontend/train/graph_runner.h"
#include "tests/differential/bounds.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::testing::buildCase;
using graph::testing::CaseGraph;
using graph::testing::NamedCase;
using graph::testing::namedCases;
using graph::testing::weightedSum;

bool isDifferentiable(const graph::OpDef& op) { return !std::holds_alternative<graph::NotDifferentiable>(*op.gradient); }

bool hasFloats(const graph::OpCase& op_case) {
  for (const graph::OperandCase& operand : op_case.operands) {
    if (operand.type.dtype == graph::DType::F32) return true;
  }
  return false;
}

class Op : public testing::TestWithParam<NamedCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, Op, testing::ValuesIn(namedCases([](const graph::OpDef&) { return true; })),
                         [](const auto& info) { return info.param.name(); });

TEST_P(Op, devices_agree_with_the_evaluator) {
  const NamedCase& named = GetParam();
  CaseGraph made = buildCase(*named.op, named.op_case);
  for (size_t i = 0; i < made.results.size(); ++i) {
    made.builder.output(graph::OutputKind::Result, "y" + std::to_string(i), made.results[i]);
  }
  std::vector<graph::Tensor> want = runGraph(made.builder.graph(), made.leaves);
  for (const std::string& device : devicesUnderTest()) {
    const size_t unbounded =
        expectWithinBounds(runGraph(made.builder.graph(), made.leaves, {.device = device, .opened = openedDevice(device)}), want,
                           boundGraph(made.builder.graph(), made.leaves, {.device = device, .opened = openedDevice(device)}),
                           named.op_case.tolerance, named.name() + " on " + device);
    EXPECT_EQ(unbounded, 0u) << named.name() << " on " << device;
  }
}

TEST_P(Op, kernel_passes_change_no_bit) {
  const NamedCase& named = GetParam();
  CaseGraph made = buildCase(*named.op, named.op_case);
  for (size_t i = 0; i < made.results.size(); ++i) {
    made.builder.output(graph::OutputKind::Result, "y" + std::to_string(i), made.results[i]);
  }
  expectEqualBits(
      runGraph(made.builder.graph(), made.leaves, {.device = "reference", .opened = openedDevice("reference")}),
      runGraph(made.builder.graph(), made.leaves, {.device = "reference", .opened = openedDevice("reference"), .disable = {"kernels"}}),
      named.name());
}

TEST_P(Op, gradients_agree_with_the_evaluator) {
  const NamedCase& named = GetParam();
  CaseGraph made = buildCase(*named.op, named.op_case);
  const graph::TensorType& type = made.builder.typeOf(made.results[0]);
  if (!isDifferentiable(*named.op) || !hasFloats(named.op_case) || type.dtype != graph::DType::F32) GTEST_SKIP() << "not differentiable";
  std::mt19937 random(2);
  graph::ValueId loss = weightedSum(made.builder, made.results[0], "weight", made.leaves, random);
  made.builder.output(graph::OutputKind::Loss, "loss", loss);
  GraphRunOptions options{.gradients = true};
  for (size_t i = 0; i < named.op_case.operands.size(); ++i) {
    if (named.op_case.operands[i].type.dtype == graph::DType::F32) options.wrt.push_back("operand" + std::to_string(i));
  }
  std::vector<graph::Tensor> want = runGraph(made.builder.graph(), made.leaves, options);
  for (const std::string& device : devicesUnderTest()) {
    options.device = device;
    options.opened = openedDevice(device);
    // The loss is a sum of random signs, which cancel. A gradient is a short chain of the same operations as the op.
    const size_t unbounded = expectWithinBounds(runGraph(made.builder.graph(), made.leaves, options), want,
                                                boundGraph(made.builder.graph(), made.leaves, options), 4 * named.op_case.tolerance + 2e-6,
                                                named.name() + " on " + device);
    EXPECT_EQ(unbounded, 0u) << named.name() << " on " << device;
  }
}

}  // namespace
}  // namespace lockstep
