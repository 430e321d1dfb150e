// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/elementary_functions.h"
#include "ir/ops/support/random_words.h"

namespace lockstep::graph::gumbel_op {
namespace {

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  std::array<kernel::ValueId, 4> words = emitRandomWords(e);
  Lanes::Id exponential = m.neg(emitLog(m, emitUniform(e.builder(), words[0])));
  return m.neg(emitLog(m, exponential));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "gumbel",
    .summary = "Independent random numbers of the standard Gumbel distribution, -log(-log(u)): the noise of a categorical draw.",
    .constraints = kRandomConstraints,
    .operands = ConstantList<std::string_view>{"key"},
    .attributes = kRandomAttributes,
    .infer = [](const InferContext& c) { return inferRandom("gumbel", c); },
    .gradient = NotDifferentiable{kNoRandomGradient},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateRandom(c, [](const std::array<uint32_t, 4>& words) { return -std::log(-std::log(uniformOf(words[0]))); });
        },
    .cases = [] { return randomCases(1e-6, "two logarithms of a few units in the last place"); },
};

}  // namespace lockstep::graph::gumbel_op
