// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

namespace lockstep::graph::neg_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "neg",
    .summary = "The operand with its sign changed.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32 or i32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("neg", c, {DType::F32, DType::I32}); },
    .gradient = GradientFn([](const GradientContext& g) { return std::vector{g.builder.neg(g.cotangents[0])}; }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Neg, {e.operand(0)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return -x; }); },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
    .algebra = {.involution = true, .chooses = true},
};

}  // namespace lockstep::graph::neg_op
