// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::clamp_op {
namespace {

struct Bounds {
  double lo, hi;
};
Bounds boundsOf(const Attributes& attributes) { return {attributes.get<double>("lo"), attributes.get<double>("hi")}; }

Result<std::vector<TensorType>> infer(const InferContext& c) {
  Bounds bounds = boundsOf(c.attributes);
  if (!(bounds.lo <= bounds.hi)) return violated("clamp", "C2", fmt::format("the bounds are {} and {}", bounds.lo, bounds.hi));
  return inferSame("clamp", c, {DType::F32});
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Bounds bounds = boundsOf(g.node.attributes);
  ValueId x = g.operands[0];
  const TensorType type = b.typeOf(x);
  ValueId zero = b.constant(0, type);
  ValueId below = b.make("less", {x, b.constant(bounds.hi, type)});
  ValueId inside = b.make("where", {below, g.cotangents[0], zero});
  ValueId above = b.make("greater", {x, b.constant(bounds.lo, type)});
  return {b.make("where", {above, inside, zero})};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Bounds bounds = boundsOf(e.node().attributes);
  return m.within(e.operand(0), bounds.lo, bounds.hi);
}

std::vector<Tensor> evaluateClamp(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  Bounds bounds = boundsOf(c.node.attributes);
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    double value = x(index);
    if (value < bounds.lo) return bounds.lo;
    return value > bounds.hi ? bounds.hi : value;
  });
}

std::vector<OpCase> cases() {
  // The bounds are f32 values: nothing is rounded.
  std::vector<OpCase> cases = elementCases(1, -2, 2, 0, kExactReason);
  for (OpCase& op_case : cases) op_case.attributes = {{"lo", -0.75}, {"hi", 1.25}};
  return cases;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "clamp",
    .summary = "The operand within [lo, hi]; the gradient is 0 at the bounds and beyond.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "lo is at most hi"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes =
        ConstantList<AttributeDef>{{"lo", AttributeKind::Float, "the lower bound"}, {"hi", AttributeKind::Float, "the upper bound"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = evaluateClamp,
    .cases = cases,
};

}  // namespace lockstep::graph::clamp_op
