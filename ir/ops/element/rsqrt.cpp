// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::rsqrt_op {
namespace {

// d x^(-1/2) = -1/2 x^(-3/2), and x^(-3/2) is the cube of the result.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId y = g.results[0];
  return {b.mul(b.mul(g.cotangents[0], b.mul(y, b.mul(y, y))), -0.5)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "rsqrt",
    .summary = "Reciprocal of the square root.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("rsqrt", c, {DType::F32}); },
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::InverseSqrt, {e.operand(0)}); },
                             .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return 1 / std::sqrt(x); }); },
    .cases = [] { return elementCases(1, 0.1, 9, 3e-7, "WGSL inverseSqrt is within 2 units in the last place"); },
};

}  // namespace lockstep::graph::rsqrt_op
