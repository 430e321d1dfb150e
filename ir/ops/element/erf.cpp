// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ir/ops/support/common.h"
#include "ir/ops/support/elementary_functions.h"

namespace lockstep::graph::erf_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0];
  ValueId density = b.mul(b.make("exp", {b.neg(b.mul(x, x))}), 2 / std::sqrt(std::numbers::pi));
  return {b.mul(g.cotangents[0], density)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "erf",
    .summary = "Error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("erf", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit =
                                 [](ElementEmitter& e) {
                                   Lanes m(e);
                                   return emitErf(m, e.operand(0));
                                 },
                             .transcendental = true,
                             .operations = [](const Node&) { return 70u; }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::erf(x); }); },
    .cases = [] { return elementCases(1, -4, 4, 3e-7, "a few units in the last place"); },
};

}  // namespace lockstep::graph::erf_op
