// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::leaky_relu_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  double alpha = c.attributes.get<double>("alpha");
  if (!std::isfinite(alpha)) return violated("leaky_relu", "C2", fmt::format("alpha is {}", alpha));
  return inferSame("leaky_relu", c, {DType::F32});
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], dy = g.cotangents[0];
  ValueId positive = b.make("greater", {x, b.constant(0, b.typeOf(x))});
  return {b.make("where", {positive, dy, b.mul(dy, g.node.attributes.get<double>("alpha"))})};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  Lanes::Id scaled = m.mul(x, e.node().attributes.get<double>("alpha"));
  return m.select(m.greater(x, 0), x, scaled);
}

std::vector<Tensor> evaluateLeakyRelu(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  double alpha = c.node.attributes.get<double>("alpha");
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) { return x(index) > 0 ? x(index) : alpha * x(index); });
}

std::vector<OpCase> cases() {
  std::vector<OpCase> cases = elementCases(1, -2, 2, kOneRounding, kOneRoundingReason);
  for (OpCase& op_case : cases) op_case.attributes = {{"alpha", 0.1}};
  return cases;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "leaky_relu",
    .summary = "The operand where it is positive, else alpha times the operand; the gradient at 0 is alpha.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "alpha is finite"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"alpha", AttributeKind::Float, "slope where the operand is not positive"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = evaluateLeakyRelu,
    .cases = cases,
};

}  // namespace lockstep::graph::leaky_relu_op
