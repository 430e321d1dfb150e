// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/bits.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::bitwise_and_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "bitwise_and",
    .summary = "Those bits that both have, element by element.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("bitwise_and", c, {DType::I32, DType::U32}); },
    .gradient = NotDifferentiable{kBitsHaveNoGradient},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::And, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateBits(c, [](uint32_t a, uint32_t b) { return a & b; }); },
    .cases = [] { return bitCases(); },
    .range =
        [](const RangeContext& c) {
          return combinedRange(c, [](IntegerRange a, IntegerRange b) {
            // A number that is not negative has no bits for the result above its own.
            if (a.lo >= 0 && b.lo >= 0) return IntegerRange{0, std::min(a.hi, b.hi)};
            if (a.lo >= 0 || b.lo >= 0) return IntegerRange{0, a.lo >= 0 ? a.hi : b.hi};
            return IntegerRange{INT32_MIN, std::max(a.hi, b.hi)};
          });
        },
};

}  // namespace lockstep::graph::bitwise_and_op
