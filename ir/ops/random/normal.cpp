// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ir/ops/support/elementary_functions.h"
#include "ir/ops/support/random_words.h"

namespace lockstep::graph::normal_op {
namespace {

// cos(2 pi u) = sin(2 pi s) with s = |u - 1/2| - 1/4 in [-1/4, 1/4], exact in f32; then the Taylor series up to s^13.
Lanes::Id emitCosineOfTurns(Lanes& m, Lanes::Id u) {
  static constexpr std::array kSine{6.2831853f, -41.341702f, 81.605249f, -76.705860f, 42.058693f, -15.094643f, 3.8199526f};
  Lanes::Id s = m.sub(m.abs(m.sub(u, 0.5)), 0.25);
  return m.mul(m.polynomial(m.mul(s, s), kSine), s);
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  std::array<kernel::ValueId, 4> words = emitRandomWords(e);
  Lanes::Id log = emitLog(m, emitUniform(e.builder(), words[0]));
  Lanes::Id radius = m.make(kernel::Op::Sqrt, {m.mul(log, -2.0)});
  return m.mul(radius, emitCosineOfTurns(m, emitUniform(e.builder(), words[1])));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "normal",
    .summary = "Independent standard normal random numbers, by Box and Muller (1958).",
    .constraints = kRandomConstraints,
    .operands = ConstantList<std::string_view>{"key"},
    .attributes = kRandomAttributes,
    .infer = [](const InferContext& c) { return inferRandom("normal", c); },
    .gradient = NotDifferentiable{kNoRandomGradient},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateRandom(c, [](const std::array<uint32_t, 4>& words) {
            return std::sqrt(-2 * std::log(uniformOf(words[0]))) * std::cos(2 * std::numbers::pi * uniformOf(words[1]));
          });
        },
    .cases = [] { return randomCases(1e-6, "a logarithm, a root and a cosine of a few units in the last place"); },
};

}  // namespace lockstep::graph::normal_op
