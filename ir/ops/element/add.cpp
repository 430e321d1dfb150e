// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::add_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "add",
    .summary = "Sum of two tensors, element by element.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, f32, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("add", c, {DType::F32, DType::I32, DType::U32}); },
    .gradient = GradientFn([](const GradientContext& g) { return std::vector{g.cotangents[0], g.cotangents[0]}; }),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Add, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return a + b; }); },
    .cases = [] { return elementCases(2, -2, 2, kOneRounding, kOneRoundingReason); },
    .algebra = {.neutral = 0, .commutes = true},
    .range =
        [](const RangeContext& c) {
          return combinedRange(c, [](IntegerRange a, IntegerRange b) { return IntegerRange{a.lo + b.lo, a.hi + b.hi}; });
        },
};

}  // namespace lockstep::graph::add_op
