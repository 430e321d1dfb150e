// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/bits.h"

namespace lockstep::graph::left_shift_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "left_shift",
    .summary = "The bits of x moved towards the high ones by a count that is taken modulo 32, with 0 at the low end.",
    .constraints = ConstantList<Constraint>{{"C1", "x is i32 or u32"}, {"C2", "the count is u32"}, {"C3", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"x", "count"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferShift("left_shift", c); },
    .gradient = NotDifferentiable{kBitsHaveNoGradient},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Shl, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateBits(c, [](uint32_t x, uint32_t n) { return x << (n % 32); }); },
    .cases = [] { return shiftCases(); },
};

}  // namespace lockstep::graph::left_shift_op
