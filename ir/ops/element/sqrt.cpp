// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::sqrt_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sqrt",
    .summary = "Square root.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("sqrt", c, {DType::F32}); },
    .gradient =
        GradientFn([](const GradientContext& g) { return std::vector{g.builder.mul(g.builder.div(g.cotangents[0], g.results[0]), 0.5)}; }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Sqrt, {e.operand(0)}); },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::sqrt(x); }); },
    .cases = [] { return elementCases(1, 0.1, 9, 7e-7, "WGSL inherits the error of 1 / inverseSqrt: 2 + 2.5 units in the last place"); },
};

}  // namespace lockstep::graph::sqrt_op
