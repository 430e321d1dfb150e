// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

namespace lockstep::graph::greater_equal_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "greater_equal",
    .summary = "Whether a >= b, element by element.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, f32, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferCompare("greater_equal", c, Compared::Numbers); },
    .gradient = NotDifferentiable{"the result is a truth value, which is constant almost everywhere"},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Ge, {e.operand(0), e.operand(1)}); },
                             .cheap = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return a >= b ? 1.0 : 0.0; }); },
    .cases = [] { return compareCases(Compared::Numbers); },
};

}  // namespace lockstep::graph::greater_equal_op
