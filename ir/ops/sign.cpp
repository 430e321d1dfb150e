// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"

namespace lockstep::graph {

extern const OpDef kSignOp;
constexpr OpDef kSignOp{
    .name = "sign",
    .summary = "-1, 0 or 1 by the sign of x; the gradient is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("sign", c, {DType::F32}); },
    .gradient = GradientFn([](const GradientContext&) { return std::vector{ValueId()}; }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Sign, {e.operand(0)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return x > 0   ? 1.0
                                                                                            : x < 0 ? -1.0
                                                                                                    : 0.0; }); },
    .cases = [] { return elementCases(1, -4, 4, 0, "every result is an exact number"); },
};

}  // namespace lockstep::graph
