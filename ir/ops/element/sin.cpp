// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::sin_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sin",
    .summary = "Sine of an angle in radians.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("sin", c, {DType::F32}); },
    .gradient = GradientFn(
        [](const GradientContext& g) { return std::vector{g.builder.mul(g.cotangents[0], g.builder.make("cos", {g.operands[0]}))}; }),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitSin(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::sin(x); }); },
    .cases = [] { return elementCases(1, -20, 20, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::sin_op
