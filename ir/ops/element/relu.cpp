// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::relu_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  // Of operand and result the result is kept for the backward pass. It is never below 0, and a NaN is not equal to 0.
  ValueId y = g.results[0], zero = b.constant(0, b.typeOf(y));
  return {b.make("where", {b.make("less_equal", {y, zero}), zero, g.cotangents[0]})};
}

// As integers the numbers with a sign, from -0 to -infinity, are the lowest; NaNs with a sign are above them.
kernel::ValueId emit(ElementEmitter& e) {
  constexpr int32_t kMinusInfinity = INT32_MIN | 0x7f800000;
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  Lanes::Id is_negative = m.make(kernel::Op::Le, {m.bits(x), m.integer(kMinusInfinity)});
  return m.select(is_negative, m.number(0), x);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "relu",
    .summary = "The operand where it is positive or NaN, else 0; the gradient at 0 is 0 and at NaN 1.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("relu", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return x <= 0 ? 0.0 : x; }); },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
    .algebra = {.chooses = true},
};

}  // namespace lockstep::graph::relu_op
