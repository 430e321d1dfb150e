// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::hard_sigmoid_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0];
  const TensorType type = b.typeOf(x);
  ValueId above = b.make("greater", {x, b.constant(-3, type)});
  ValueId below = b.make("less", {x, b.constant(3, type)});
  ValueId inside = b.make("logical_and", {above, below});
  return {b.make("where", {inside, b.mul(g.cotangents[0], 1.0 / 6), b.constant(0, type)})};
}

// x + 3 is exact near -3, where x / 6 + 1/2 would cancel.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id shifted = m.add(e.operand(0), 3.0);
  return m.mul(m.within(shifted, 0, 6), 1.0 / 6);
}

double hardSigmoid(double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; }

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "hard_sigmoid",
    .summary = "x / 6 + 1/2 within [0, 1], as in PyTorch; the gradient at -3 and 3 is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("hard_sigmoid", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, hardSigmoid); },
    .cases = [] { return elementCases(1, -5, 5, 2e-7, "a sum and a product"); },
};

}  // namespace lockstep::graph::hard_sigmoid_op
