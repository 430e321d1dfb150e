// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

namespace lockstep::graph::logical_or_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "logical_or",
    .summary = "Whether at least one holds, element by element.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are bool"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("logical_or", c, {DType::Bool}); },
    .gradient = NotDifferentiable{"the operands are truth values"},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Or, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }); },
    .cases =
        [] {
          auto make = [](std::string_view name, const Shape& shape) {
            return OpCase{name, {{boolean(shape), 0, 1}, {boolean(shape), 0, 1}}, {}, 0, "a truth value has no rounding"};
          };
          return std::vector{make("small", {3, 5}), make("odd", {257}), make("four", {2, 3, 4, 5}), make("scalar", {})};
        },
};

}  // namespace lockstep::graph::logical_or_op
