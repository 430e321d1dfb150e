// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::gelu_tanh_op {
namespace {

// Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. (1 + tanh(u)) / 2 is sigmoid(2 u), without cancellation for negative u.
const double kScale = std::sqrt(2 / std::numbers::pi);
constexpr double kCubic = 0.044715;

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  // With u = 2 kScale (x + kCubic x^3) and s = sigmoid(u): y' = s + y (1 - s) u'.
  ValueId x = g.operands[0];
  ValueId square = b.mul(x, x);
  ValueId u = b.mul(x, b.add(b.mul(square, 2 * kScale * kCubic), 2 * kScale));
  ValueId slope = b.add(b.mul(square, 6 * kScale * kCubic), 2 * kScale);
  ValueId s = b.make("sigmoid", {u});
  ValueId rest = b.mul(b.mul(g.results[0], b.add(b.neg(s), 1.0)), slope);
  return {b.mul(g.cotangents[0], b.add(s, rest))};
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  Lanes::Id square = m.mul(x, x);
  Lanes::Id factor = m.add(m.mul(square, 2 * kScale * kCubic), 2 * kScale);
  Lanes::Id u = m.mul(x, factor);
  return m.mul(x, emitSigmoid(m, u));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "gelu_tanh",
    .summary = "Approximation of gelu, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("gelu_tanh", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateEach(c, [](double x) { return x / (1 + std::exp(-2 * kScale * (x + kCubic * x * x * x))); });
        },
    .cases = [] { return elementCases(1, -6, 6, 4e-7, "sigmoid of an argument of up to 18: its rounding counts 9 times"); },
};

}  // namespace lockstep::graph::gelu_tanh_op
