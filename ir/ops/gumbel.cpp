// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/random.h"

namespace lockstep::graph {
namespace {

kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  std::array<kernel::ValueId, 4> words = emitRandomWords(e);
  kernel::ValueId exponential = b.make(kernel::Op::Neg, {emitLog(b, emitUniform(b, words[0]))});
  return b.make(kernel::Op::Neg, {emitLog(b, exponential)});
}

}  // namespace

extern const OpDef kGumbelOp;
const OpDef kGumbelOp{
    .name = "gumbel",
    .summary = "Independent random numbers of the standard Gumbel distribution, -log(-log(u)): the noise of a categorical draw.",
    .constraints = randomConstraints(),
    .operands = std::vector<std::string_view>{"key"},
    .attributes = randomAttributes(),
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

}  // namespace lockstep::graph
