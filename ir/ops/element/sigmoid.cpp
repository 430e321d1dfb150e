// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::sigmoid_op {
namespace {

// y (1 - y), where 1 - y is sigmoid(-x): it does not cancel where y is near 1.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId rest = b.make("sigmoid", {b.neg(g.operands[0])});
  ValueId slope = b.mul(g.results[0], rest);
  return {b.mul(g.cotangents[0], slope)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sigmoid",
    .summary = "Logistic function 1 / (1 + exp(-x)).",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("sigmoid", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitSigmoid(m, e.operand(0));
                                 },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateEach(c, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); });
        },
    .cases = [] { return elementCases(1, -30, 30, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::sigmoid_op
