// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId dy = g.cotangents[0], zero = b.constant(0, b.typeOf(dy)), chose_a = b.make("greater", {g.operands[0], g.operands[1]});
  return {b.make("where", {chose_a, dy, zero}), b.make("where", {chose_a, zero, dy})};
}

}  // namespace

extern const OpDef kMaxOp;
constexpr OpDef kMaxOp{
    .name = "max",
    .summary = "Larger of two tensors, element by element; where they are equal the gradient goes to b.",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands have the same element type, f32, i32 or u32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("max", c, {DType::F32, DType::I32, DType::U32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Max, {e.operand(0), e.operand(1)}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double a, double b) { return a > b ? a : b; }); },
    .cases = [] { return elementCases(2, -2, 2, 0, kExactReason); },
};

}  // namespace lockstep::graph
