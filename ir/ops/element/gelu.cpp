// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::gelu_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  return {g.builder.mul(g.cotangents[0], g.builder.make("gelu_gradient", {g.operands[0]}))};
}

// F(x) = erfc(-x / sqrt(2)) / 2: by 1 + erf the small values of negative x would cancel.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  if (isCoarse(e.node())) {
    const auto [bell, tail] = emitCoarseNormal(m, x);
    // A product with x itself, so that a NaN stays one; of -infinity the function is 0.
    return m.select(m.less(x, -14.2), m.number(0), m.mul(x, m.select(m.less(x, 0), tail, m.sub(m.number(1), tail))));
  }
  Lanes::Id magnitude = m.atMost(m.abs(x), 14.2);  // F(-14.2) is below the smallest f32
  Lanes::Id bell = emitGaussian(m, magnitude, 0.5);
  Lanes::Id scaled = emitErfcx(m, m.mul(magnitude, 1 / std::numbers::sqrt2));
  Lanes::Id half = m.mul(scaled, 0.5);
  Lanes::Id rest = m.sub(m.number(1), m.mul(bell, half));
  // F(-13) is subnormal, which a device may make 0, where -13 F(-13) is not: so the bell comes last.
  Lanes::Id below = m.mul(m.mul(x, half), bell);
  return m.select(m.less(x, 0), below, m.mul(x, rest));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "gelu",
    .summary = "x times the standard normal distribution function of x, x (1 + erf(x / sqrt(2))) / 2.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{kCoarse},
    .infer = [](const InferContext& c) { return inferSame("gelu", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower =
        ElementLowering{.emit = emit, .transcendental = true, .operations = [](const Node& node) { return isCoarse(node) ? 25u : 70u; }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }); },
    .cases = [] { return elementCases(1, -6, 6, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::gelu_op
