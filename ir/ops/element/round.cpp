// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::round_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "round",
    .summary = "Nearest integer, the even one of two; the gradient is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("round", c, {DType::F32}); },
    .gradient = GradientFn([](const GradientContext&) { return std::vector{ValueId()}; }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Round, {e.operand(0)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::nearbyint(x); }); },
    .cases = [] { return elementCases(1, -4, 4, 0, "every result is an exact number"); },
};

}  // namespace lockstep::graph::round_op
