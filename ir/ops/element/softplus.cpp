// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::softplus_op {
namespace {

/// Above it PyTorch has x itself, which in f32 is the same.
constexpr double kThreshold = 20;

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], dy = g.cotangents[0];
  ValueId linear = b.make("greater", {x, b.constant(kThreshold, b.typeOf(x))});
  ValueId curved = b.mul(dy, b.make("sigmoid", {x}));
  return {b.make("where", {linear, dy, curved})};
}

// max(x, 0) + log(1 + e^-|x|): nothing overflows, and far below 0 the result is e^x.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  Lanes::Id tail = emitLog1p(m, emitExp(m, m.neg(m.abs(x))));
  return m.add(m.atLeast(x, 0), tail);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "softplus",
    .summary = "log(1 + exp(x)); above 20 x itself, as in PyTorch.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("softplus", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return x > kThreshold ? x : std::log1p(std::exp(x)); }); },
    .cases = [] { return elementCases(1, -40, 40, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::softplus_op
