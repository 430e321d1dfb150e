// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

namespace lockstep::graph::logical_not_op {

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "logical_not",
    .summary = "Whether x does not hold, element by element.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is bool"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("logical_not", c, {DType::Bool}); },
    .gradient = NotDifferentiable{"the operands are truth values"},
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Not, {e.operand(0)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return x == 0 ? 1.0 : 0.0; }); },
    .cases =
        [] {
          auto make = [](std::string_view name, const Shape& shape) {
            return OpCase{name, {{boolean(shape), 0, 1}}, {}, 0, "a truth value has no rounding"};
          };
          return std::vector{make("small", {3, 5}), make("odd", {257}), make("four", {2, 3, 4, 5}), make("scalar", {})};
        },
};

}  // namespace lockstep::graph::logical_not_op
