// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::expm1_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "expm1",
    .summary = "Exponential function minus 1, accurate near 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("expm1", c, {DType::F32}); },
    .gradient =
        GradientFn([](const GradientContext& g) { return std::vector{g.builder.mul(g.cotangents[0], g.builder.add(g.results[0], 1.0))}; }),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitExpm1(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::expm1(x); }); },
    .cases = [] { return elementCases(1, -4, 4, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::expm1_op
