// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::tanh_op {
namespace {

// y' = 1 - y^2 from the result, so that the operand need not be kept. Its absolute error is a rounding of y's; relative to a slope near 0
// (|x| above 5) that is large, as in every framework that keeps y.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId y = g.results[0];
  ValueId below = b.add(b.neg(y), 1.0);
  ValueId above = b.add(y, 1.0);
  return {b.mul(g.cotangents[0], b.mul(below, above))};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "tanh",
    .summary = "Hyperbolic tangent.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("tanh", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitTanh(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::tanh(x); }); },
    .cases = [] { return elementCases(1, -4, 4, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::tanh_op
