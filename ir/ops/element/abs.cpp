// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::abs_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], dy = g.cotangents[0], zero = b.constant(0, b.typeOf(x));
  ValueId where_positive = b.make("where", {b.make("greater", {x, zero}), dy, zero});
  return {b.make("where", {b.make("less", {x, zero}), b.make("neg", {dy}), where_positive})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "abs",
    .summary = "Absolute value; the gradient at 0 is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("abs", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Abs, {e.operand(0)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::fabs(x); }); },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
    .algebra = {.chooses = true},
};

}  // namespace lockstep::graph::abs_op
