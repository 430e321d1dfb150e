// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::sign_op {
namespace {

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id x = e.operand(0);
  return m.orNaN(x, m.make(kernel::Op::Sign, {x}));
}

double signOf(double x) {
  if (std::isnan(x)) return x;
  if (x == 0) return 0;
  return x > 0 ? 1 : -1;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sign",
    .summary = "-1, 0 or 1 by the sign of x, NaN where x is; the gradient is 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferSame("sign", c, {DType::F32}); },
    .gradient = GradientFn([](const GradientContext&) { return std::vector{ValueId()}; }),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, signOf); },
    .cases = [] { return elementCases(1, -4, 4, 0, "every result is an exact number"); },
};

}  // namespace lockstep::graph::sign_op
