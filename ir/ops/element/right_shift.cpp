// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/bits.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::right_shift_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "right_shift",
    .summary = "The bits of x moved towards the low ones by a count that is taken modulo 32, with the sign of an i32 or 0 at the high end.",
    .constraints = ConstantList<Constraint>{{"C1", "x is i32 or u32"}, {"C2", "the count is u32"}, {"C3", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"x", "count"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferShift("right_shift", c); },
    .gradient = NotDifferentiable{kBitsHaveNoGradient},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Shr, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          if (c.results[0].dtype == DType::U32) return evaluateBits(c, [](uint32_t x, uint32_t n) { return x >> (n % 32); });
          return evaluateBits(c, [](uint32_t x, uint32_t n) { return static_cast<uint32_t>(static_cast<int32_t>(x) >> (n % 32)); });
        },
    .cases = [] { return shiftCases(); },
    .range = [](const RangeContext& c) -> std::vector<KnownRange> {
      if (!c.operands[0]) return {KnownRange()};
      // Towards 0, or towards -1 from below.
      const auto [lo, hi] = *c.operands[0];
      return {IntegerRange{std::min<int64_t>(lo, 0), lo < 0 ? std::max<int64_t>(hi, -1) : hi}};
    },
};

}  // namespace lockstep::graph::right_shift_op
