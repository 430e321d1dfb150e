// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::reciprocal_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId y = g.results[0];
  return {b.neg(b.mul(g.cotangents[0], b.mul(y, y)))};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "reciprocal",
    .summary = "1 / x.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("reciprocal", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   Lanes::Id one = m.number(1);
                                   return m.div(one, e.operand(0));
                                 }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return 1 / x; }); },
    .cases = [] { return elementCases(1, 0.5, 3, 3e-7, "WGSL division is within 2.5 units in the last place"); },
};

}  // namespace lockstep::graph::reciprocal_op
