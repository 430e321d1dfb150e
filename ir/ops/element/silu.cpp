// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::silu_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  // y' = s + x s (1 - s) = s + y (1 - s)
  ValueId s = b.make("sigmoid", {g.operands[0]});
  ValueId rest = b.mul(g.results[0], b.add(b.neg(s), 1.0));
  return {b.mul(g.cotangents[0], b.add(s, rest))};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  return m.mul(x, emitSigmoid(m, x));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "silu",
    .summary = "x sigmoid(x), also called swish.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("silu", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateEach(c, [](double x) { return x < 0 ? x * std::exp(x) / (1 + std::exp(x)) : x / (1 + std::exp(-x)); });
        },
    .cases = [] { return elementCases(1, -20, 20, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::silu_op
