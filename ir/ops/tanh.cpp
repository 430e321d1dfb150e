// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/elementary.h"

namespace lockstep::graph {
namespace {

// 1 - y^2 is 4 sigmoid(2 x) sigmoid(-2 x), which does not cancel where y is near 1.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId twice = b.mul(g.operands[0], 2.0);
  ValueId rising = b.make("sigmoid", {twice});
  ValueId falling = b.make("sigmoid", {b.neg(twice)});
  ValueId slope = b.mul(b.mul(rising, falling), 4.0);
  return {b.mul(g.cotangents[0], slope)};
}

}  // namespace

extern const OpDef kTanhOp;
const OpDef kTanhOp{
    .name = "tanh",
    .summary = "Hyperbolic tangent.",
    .constraints = std::vector<Constraint>{{"C1", "the operand is f32"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("tanh", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitTanh(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::tanh(x); }); },
    .cases = [] { return elementCases(1, -12, 12, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph
