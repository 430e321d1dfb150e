// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/random_words.h"

namespace lockstep::graph::uniform_op {
namespace {

kernel::ValueId emit(ElementEmitter& e) {
  std::array<kernel::ValueId, 4> words = emitRandomWords(e);
  return emitUniform(e.builder(), words[0]);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "uniform",
    .summary = "Independent random numbers, uniform in (0, 1).",
    .constraints = kRandomConstraints,
    .operands = ConstantList<std::string_view>{"key"},
    .attributes = kRandomAttributes,
    .infer = [](const InferContext& c) { return inferRandom("uniform", c); },
    .gradient = NotDifferentiable{kNoRandomGradient},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateRandom(c, [](const std::array<uint32_t, 4>& words) { return uniformOf(words[0]); });
        },
    .cases = [] { return randomCases(0, "multiples of 2^-24 are exact"); },
};

}  // namespace lockstep::graph::uniform_op
