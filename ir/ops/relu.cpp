// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  // The result is positive exactly where the operand is, and it is the one of the two that is kept for the backward pass.
  ValueId y = g.results[0], zero = b.constant(0, b.typeOf(y));
  return {b.make("where", {b.make("greater", {y, zero}), g.cotangents[0], zero})};
}

}  // namespace

extern const OpDef kReluOp;
constexpr OpDef kReluOp{
    .name = "relu",
    .summary = "The operand where it is positive, else 0; the gradient at 0 is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("relu", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower =
        ElementLowering{
            .emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Max, {e.operand(0), laneConstant(e, DType::F32, 0)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return x > 0 ? x : 0.0; }); },
    .cases = [] { return elementCases(1, -2, 2, 0, kExactReason); },
};

}  // namespace lockstep::graph
