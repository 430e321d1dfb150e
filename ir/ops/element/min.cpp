// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/largest_smallest.h"

namespace lockstep::graph::min_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "min",
    .summary = "Smaller of two tensors, element by element, NaN where one of them is; where they are equal the gradient goes to b.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, f32, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("min", c, {DType::F32, DType::I32, DType::U32}); },
    .gradient = GradientFn([](const GradientContext& g) { return choiceGradient(g, "less", "greater_equal"); }),
    .lower =
        ElementLowering{.emit = [](ElementEmitter& e) { return emitExtremum(e.builder(), kernel::Op::Min, e.operand(0), e.operand(1)); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return a < b || std::isnan(a) ? a : b; }); },
    .cases = [] { return elementCases(2, -2, 2, 0, kExactReason); },
    .algebra = {.chooses = true},
    .range =
        [](const RangeContext& c) {
          return combinedRange(c, [](IntegerRange a, IntegerRange b) { return IntegerRange{std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; });
        },
};

}  // namespace lockstep::graph::min_op
