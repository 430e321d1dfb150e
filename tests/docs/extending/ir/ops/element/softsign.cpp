// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::softsign_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  // y' = 1 / (1 + |x|)^2 = (1 - |y|)^2, so that only the result is kept for the backward pass.
  ValueId rest = b.add(b.neg(b.make("abs", {g.results[0]})), 1.0);
  return {b.mul(g.cotangents[0], b.mul(rest, rest))};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  return m.div(x, m.add(m.abs(x), 1));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "softsign",
    .summary = "x / (1 + |x|): between -1 and 1, with longer tails than tanh.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("softsign", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return x / (1 + std::abs(x)); }); },
    .cases = [] { return elementCases(1, -4, 4, 4e-7, "a division is exact to 2.5 units in the last place"); },
};

}  // namespace lockstep::graph::softsign_op
