// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ir/ops/random.h"

namespace lockstep::graph {
namespace {

// cos(2 pi u) = sin(2 pi s) with s = |u - 1/2| - 1/4 in [-1/4, 1/4], exact in f32; then the Taylor series up to s^13.
kernel::ValueId emitCosineOfTurns(kernel::Builder& b, kernel::ValueId u) {
  kernel::ValueId distance = b.make(kernel::Op::Abs, {b.make(kernel::Op::Sub, {u, b.f32(0.5f)})});
  kernel::ValueId s = b.make(kernel::Op::Sub, {distance, b.f32(0.25f)});
  kernel::ValueId z = b.make(kernel::Op::Mul, {s, s}), sum = b.f32(3.8199526f);
  for (float coefficient : {-15.094643f, 42.058693f, -76.705860f, 81.605249f, -41.341702f, 6.2831853f})
    sum = b.make(kernel::Op::Add, {b.make(kernel::Op::Mul, {sum, z}), b.f32(coefficient)});
  return b.make(kernel::Op::Mul, {sum, s});
}

kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  std::array<kernel::ValueId, 4> words = emitRandomWords(e);
  kernel::ValueId log = emitLog(b, emitUniform(b, words[0]));
  kernel::ValueId radius = b.make(kernel::Op::Sqrt, {b.make(kernel::Op::Mul, {log, b.f32(-2)})});
  return b.make(kernel::Op::Mul, {radius, emitCosineOfTurns(b, emitUniform(b, words[1]))});
}

}  // namespace

extern const OpDef kNormalOp;
const OpDef kNormalOp{
    .name = "normal",
    .summary = "Independent standard normal random numbers, by Box and Muller (1958).",
    .constraints = randomConstraints(),
    .operands = std::vector<std::string_view>{"key"},
    .attributes = randomAttributes(),
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

}  // namespace lockstep::graph
