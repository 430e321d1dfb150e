// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::exp_op {
namespace {

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  return m.orNaN(x, m.make(kernel::Op::Exp, {x}));
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "exp",
    .summary = "Exponential function.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("exp", c, {DType::F32}); },
    .gradient = GradientFn([](const GradientContext& g) { return std::vector{g.builder.mul(g.cotangents[0], g.results[0])}; }),
    .lower = ElementLowering{.emit = emit, .transcendental = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::exp(x); }); },
    .cases = [] { return elementCases(1, -8, 8, 2.4e-6, "WGSL exp: 3 + 2 |x| units in the last place"); },
};

}  // namespace lockstep::graph::exp_op
