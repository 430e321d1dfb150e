// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::div_op {
namespace {

// d(a/b) = da/b - db (a/b)/b: the quotient is at hand.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId da = b.div(g.cotangents[0], g.operands[1]);
  return {da, b.neg(b.mul(da, g.results[0]))};
}

std::vector<Tensor> evaluateDiv(const EvaluateContext& c) {
  if (c.results[0].dtype == DType::F32) return evaluateEach(c, [](double a, double b) { return a / b; });
  return evaluateEach(c, [](double a, double b) { return b == 0 ? a : std::trunc(a / b); });
}

std::vector<OpCase> cases() {
  std::vector<OpCase> cases = elementCases(2, 0.5, 3, 3e-7, "WGSL division is within 2.5 units in the last place");
  cases.push_back({"integer", {{i32({4, 9}), -40, 40}, {i32({4, 9}), -3, 3}}, {}, 0, "integer division is exact"});
  return cases;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "div",
    .summary = "Quotient of two tensors, element by element; integers truncate and x / 0 is x.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, f32, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("div", c, {DType::F32, DType::I32, DType::U32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Div, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = evaluateDiv,
    .cases = cases,
    .algebra = {.neutral = 1},
};

}  // namespace lockstep::graph::div_op
