// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::hard_swish_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], dy = g.cotangents[0];
  const TensorType type = b.typeOf(x);
  ValueId flat = b.make("less_equal", {x, b.constant(-3, type)});
  ValueId below = b.make("less", {x, b.constant(3, type)});
  ValueId slope = b.add(b.mul(x, 1.0 / 3), 0.5);
  ValueId upper = b.make("where", {below, b.mul(dy, slope), dy});
  return {b.make("where", {flat, b.constant(0, type), upper})};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  Lanes::Id gate = m.within(m.add(x, 3.0), 0, 6);
  return m.mul(x, m.mul(gate, 1.0 / 6));
}

double hardSwish(double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "hard_swish",
    .summary = "x times hard_sigmoid(x), as in PyTorch; the gradient at -3 is 0 and at 3 it is 1.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("hard_swish", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, hardSwish); },
    .cases = [] { return elementCases(1, -5, 5, 3e-7, "a sum and two products"); },
};

}  // namespace lockstep::graph::hard_swish_op
