// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::is_finite_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(std::vector<TensorType> types, inferSame("is_finite", c, {DType::F32}));
  types.front().dtype = DType::Bool;
  return types;
}

// By the bits: a device may take it that no float is infinite or NaN.
kernel::ValueId emit(ElementEmitter& e) {
  constexpr int32_t kExponent = 0x7f800000;
  Lanes m(e);
  Lanes::Id exponent = m.masked(m.bits(e.operand(0)), kExponent);
  return m.make(kernel::Op::Ne, {exponent, m.integer(kExponent)});
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "is_finite",
    .summary = "Whether x is neither infinite nor NaN.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = NotDifferentiable{"the result is a truth value, which is constant almost everywhere"},
    .lower = ElementLowering{.emit = emit, .cheap = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }); },
    .cases = [] { return elementCases(1, -2, 2, 0, "a truth value has no rounding"); },
};

}  // namespace lockstep::graph::is_finite_op
