// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/bits.h"

namespace lockstep::graph::bitwise_or_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "bitwise_or",
    .summary = "Those bits that at least one has, element by element.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("bitwise_or", c, {DType::I32, DType::U32}); },
    .gradient = NotDifferentiable{kBitsHaveNoGradient},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Or, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateBits(c, [](uint32_t a, uint32_t b) { return a | b; }); },
    .cases = [] { return bitCases(); },
};

}  // namespace lockstep::graph::bitwise_or_op
