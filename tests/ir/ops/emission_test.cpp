// SPDX-License-Identifier: Apache-2.0
// Element and reduce lowerings build kernel IR of the right type at every width; what it computes is tested on the backends.
#include <gtest/gtest.h>

#include "ir/ops/support/common.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

/// Operands are parameters of a kernel function, the position too.
class ParameterEmitter : public ElementEmitter {
 public:
  ParameterEmitter(const Graph& graph, const Node& node, uint32_t width) : graph_(graph), node_(node), width_(width) {
    function_ = builder_.function("f", builder_.types().voidType());
    builder_.enterFunction(function_);
    for (size_t axis = 0; axis < graph.shapeOf(node.results[0]).rank(); ++axis) index_.push_back(parameter(builder_.types().u32()));
  }
  kernel::Builder& builder() override { return builder_; }
  const Graph& graph() override { return graph_; }
  const Node& node() override { return node_; }
  std::span<const kernel::ValueId> index() override { return index_; }
  uint32_t width() override { return width_; }
  kernel::ValueId operand(size_t i) override {
    EXPECT_EQ(graph_.shapeOf(node_.operands[i]), graph_.shapeOf(node_.results[0]));
    return parameter(typeOf(graph_.typeOf(node_.operands[i]).dtype));
  }
  kernel::ValueId operandAt(size_t i, std::vector<kernel::ValueId> index) override {
    EXPECT_EQ(width_, 1U);
    EXPECT_EQ(index.size(), graph_.shapeOf(node_.operands[i]).rank());
    for (kernel::ValueId position : index) EXPECT_EQ(builder_.typeIdOf(position), builder_.types().u32());
    return parameter(typeOf(graph_.typeOf(node_.operands[i]).dtype));
  }
  kernel::TypeId typeOf(DType dtype) {
    kernel::TypeTable& types = builder_.types();
    return types.scalarOrVector(registerScalar(dtype), width_);
  }

 private:
  kernel::ValueId parameter(kernel::TypeId type) { return builder_.parameter(function_, "p" + std::to_string(parameters_++), type); }
  const Graph& graph_;
  const Node& node_;
  uint32_t width_;
  kernel::Builder builder_;
  kernel::FunctionId function_;
  std::vector<kernel::ValueId> index_;
  size_t parameters_ = 0;
};

class ElementCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(ElementCase, Emission_HasTheResultTypeAtEveryWidth) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  const Graph& graph = made.builder.graph();
  const Node& node = graph.definition(made.results.front());
  const auto& lowering = std::get<ElementLowering>(*GetParam().op->lower);
  for (uint32_t width : {1U, 2U, 4U}) {
    if (width > 1 && (lowering.scalar_only || graph.shapeOf(node.results[0]).rank() == 0)) continue;
    ParameterEmitter emitter(graph, node, width);
    kernel::ValueId value = lowering.emit(emitter);
    kernel::Builder& b = emitter.builder();
    EXPECT_EQ(b.typeIdOf(value), emitter.typeOf(graph.typeOf(node.results[0]).dtype))
        << "width " << width << ": " << b.types().toString(b.typeIdOf(value));
  }
}

INSTANTIATE_TEST_SUITE_P(Op, ElementCase, ::testing::ValuesIn(namedCases([](const OpDef& op) {
                           return std::holds_alternative<ElementLowering>(*op.lower);
                         })),
                         [](const auto& info) { return info.param.name(); });

class ReduceCase : public ::testing::TestWithParam<NamedCase> {};

TEST_P(ReduceCase, Monoid_KeepsTheElementTypeAndTheAxes) {
  CaseGraph made = buildCase(*GetParam().op, GetParam().op_case);
  const Graph& graph = made.builder.graph();
  const Node& node = graph.definition(made.results.front());
  const auto& lowering = std::get<ReduceLowering>(*GetParam().op->lower);
  const TensorType& operand = graph.typeOf(node.operands[0]);
  kernel::Builder b;
  b.enterFunction(b.function("f", b.types().voidType()));
  kernel::ValueId identity = kernelConstant(b, operand.dtype, lowering.neutral(operand.dtype));
  kernel::ValueId combined = lowering.combine(b, identity, identity);
  EXPECT_EQ(b.typeIdOf(identity), b.types().scalar(registerScalar(operand.dtype)));
  EXPECT_EQ(b.typeIdOf(combined), b.types().scalar(registerScalar(graph.typeOf(node.results[0]).dtype)));
  // Element counts agree with the axes and with keep_dims.
  int64_t reduced = 1;
  for (int64_t axis : lowering.axes(graph, node)) reduced *= operand.shape.extent(static_cast<size_t>(axis));
  const Shape& result = graph.shapeOf(node.results[0]);
  EXPECT_EQ(result.elementCount() * reduced, operand.shape.elementCount());
  EXPECT_EQ(result.rank(), operand.shape.rank() - (lowering.keep_dims(node) ? 0 : lowering.axes(graph, node).size()));
}

INSTANTIATE_TEST_SUITE_P(Op, ReduceCase,
                         ::testing::ValuesIn(namedCases([](const OpDef& op) { return std::holds_alternative<ReduceLowering>(*op.lower); })),
                         [](const auto& info) { return info.param.name(); });

}  // namespace
}  // namespace lockstep::graph::testing
