// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::gelu_gradient_op {
namespace {

constexpr double kPeak = 0.398942280401432678;  // of the density f, 1 / sqrt(2 pi)

/// (F + x f)' = f (2 - x^2), with f = exp(-x^2 / 2) / sqrt(2 pi).
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  const ValueId x = g.operands[0], square = b.mul(x, x);
  const ValueId density = b.mul(b.make("exp", {b.mul(square, -0.5)}), kPeak);
  return {b.mul(g.cotangents[0], b.mul(density, b.add(b.mul(square, -1.0), 2.0)))};
}

/// F and f share an exponential, which is what is expensive of both; gelu computes the same one.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  if (isCoarse(e.node())) {
    const auto [bell, tail] = emitCoarseNormal(m, x);
    // A product with x itself, so that a NaN stays one; for infinities the term is 0.
    const Lanes::Id slope = m.select(m.greater(m.abs(x), 14.2), m.number(0), m.mul(m.mul(x, bell), kPeak));
    return m.add(m.select(m.less(x, 0), tail, m.sub(m.number(1), tail)), slope);
  }
  Lanes::Id magnitude = m.atMost(m.abs(x), 14.2);  // F(-14.2) is below the smallest f32
  Lanes::Id bell = emitGaussian(m, magnitude, 0.5);
  Lanes::Id scaled = emitErfcx(m, m.mul(magnitude, 1 / std::numbers::sqrt2));
  Lanes::Id tail = m.mul(bell, m.mul(scaled, 0.5));
  Lanes::Id distribution = m.select(m.less(x, 0), tail, m.sub(m.number(1), tail));
  return m.add(distribution, m.mul(m.mul(m.withSign(magnitude, x), bell), kPeak));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "gelu_gradient",
    .summary = "The derivative of gelu, F(x) + x f(x), with F the standard normal distribution function and f its density.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{kCoarse},
    .infer = [](const InferContext& c) { return inferSame("gelu_gradient", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower =
        ElementLowering{.emit = emit, .transcendental = true, .operations = [](const Node& node) { return isCoarse(node) ? 30u : 80u; }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateEach(c, [](double x) {
            const double near = std::isnan(x) ? x : std::clamp(x, -40.0, 40.0);
            return 0.5 * std::erfc(-x / std::numbers::sqrt2) + near * std::exp(-near * near / 2) * kPeak;
          });
        },
    .cases = [] { return elementCases(1, -6, 6, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::gelu_gradient_op
