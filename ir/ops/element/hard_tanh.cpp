// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::hard_tanh_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0];
  const TensorType type = b.typeOf(x);
  ValueId below = b.make("less_equal", {x, b.constant(-1, type)});
  ValueId above = b.make("greater_equal", {x, b.constant(1, type)});
  ValueId outside = b.make("logical_or", {below, above});
  return {b.make("where", {outside, b.constant(0, type), g.cotangents[0]})};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  return m.within(e.operand(0), -1, 1);
}

double hardTanh(double x) { return std::clamp(x, -1.0, 1.0); }

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "hard_tanh",
    .summary = "x within [-1, 1], as in PyTorch; the gradient at -1 and 1 is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("hard_tanh", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, hardTanh); },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
};

}  // namespace lockstep::graph::hard_tanh_op
