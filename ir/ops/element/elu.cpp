// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::elu_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  double alpha = c.attributes.get<double>("alpha");
  if (!std::isfinite(alpha)) return violated("elu", "C2", fmt::format("alpha is {}", alpha));
  return inferSame("elu", c, {DType::F32});
}

// Where the operand is negative alpha e^x is y + alpha, which nothing makes infinite.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], dy = g.cotangents[0];
  ValueId positive = b.make("greater", {x, b.constant(0, b.typeOf(x))});
  ValueId slope = b.add(g.results[0], g.node.attributes.get<double>("alpha"));
  return {b.make("where", {positive, dy, b.mul(dy, slope)})};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  Lanes::Id curve = m.mul(emitExpm1(m, m.atMost(x, 0)), e.node().attributes.get<double>("alpha"));
  return m.select(m.greater(x, 0), x, curve);
}

std::vector<Tensor> evaluateElu(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  double alpha = c.node.attributes.get<double>("alpha");
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) { return x(index) > 0 ? x(index) : alpha * std::expm1(x(index)); });
}

std::vector<OpCase> cases() {
  std::vector<OpCase> cases = elementCases(1, -5, 3, 3e-7, "a few units in the last place");
  for (OpCase& op_case : cases) op_case.attributes = {{"alpha", 1.5}};
  return cases;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "elu",
    .summary = "The operand where it is positive, else alpha (exp(x) - 1); the gradient at 0 is alpha.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "alpha is finite"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"alpha", AttributeKind::Float, "the result tends to -alpha for small operands"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate = evaluateElu,
    .cases = cases,
};

}  // namespace lockstep::graph::elu_op
