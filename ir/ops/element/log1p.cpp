// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::log1p_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "log1p",
    .summary = "Natural logarithm of 1 + x, accurate near 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("log1p", c, {DType::F32}); },
    .gradient =
        GradientFn([](const GradientContext& g) { return std::vector{g.builder.div(g.cotangents[0], g.builder.add(g.operands[0], 1.0))}; }),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitLog1p(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::log1p(x); }); },
    .cases = [] { return elementCases(1, -0.9, 9, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::log1p_op
