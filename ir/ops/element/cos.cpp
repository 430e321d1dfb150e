// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::cos_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId slope = b.neg(b.make("sin", {g.operands[0]}));
  return {b.mul(g.cotangents[0], slope)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "cos",
    .summary = "Cosine of an angle in radians.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("cos", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitCos(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::cos(x); }); },
    .cases = [] { return elementCases(1, -20, 20, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::cos_op
