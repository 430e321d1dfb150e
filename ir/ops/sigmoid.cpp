// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/elementary.h"

namespace lockstep::graph {
namespace {

// y' = y (1 - y) from the result, so that the operand need not be kept. As with tanh, a slope near 0 above x = 8 has the error of y's
// rounding.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId y = g.results[0];
  ValueId rest = b.add(b.neg(y), 1.0);
  return {b.mul(g.cotangents[0], b.mul(y, rest))};
}

}  // namespace

extern const OpDef kSigmoidOp;
const OpDef kSigmoidOp{
    .name = "sigmoid",
    .summary = "Logistic function 1 / (1 + exp(-x)).",
    .constraints = std::vector<Constraint>{{"C1", "the operand is f32"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{},
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
    .cases = [] { return elementCases(1, -8, 8, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph
