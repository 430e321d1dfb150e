// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::same_op {
namespace {

using kernel::Op;

// By the bits: a device may take it that no float is NaN.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  Lanes::Id a = m.bits(e.operand(0)), b = m.bits(e.operand(1));
  Lanes::Id magnitude_a = m.masked(a, INT32_MAX), magnitude_b = m.masked(b, INT32_MAX);
  Lanes::Id equal_bits = m.make(Op::Eq, {a, b});
  Lanes::Id either_bits = m.make(Op::Or, {magnitude_a, magnitude_b});
  Lanes::Id zeros = m.make(Op::Eq, {either_bits, m.integer(0)});
  Lanes::Id smaller = m.make(Op::Min, {magnitude_a, magnitude_b});
  Lanes::Id none = m.make(Op::Gt, {smaller, m.integer(0x7f800000)});
  return m.either(m.either(equal_bits, zeros), none);
}

double areSame(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)) ? 1 : 0; }

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "same",
    .summary = "Whether a and b are equal or both NaN, element by element: what finds the place of an extremum.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"}, {"C2", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) -> Result<std::vector<TensorType>> {
      LS_TRY(std::vector<TensorType> types, inferSame("same", c, {DType::F32}));
      types.front().dtype = DType::Bool;
      return types;
    },
    .gradient = NotDifferentiable{"the result is a truth value, which is constant almost everywhere"},
    .lower = ElementLowering{.emit = emit, .cheap = true},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, areSame); },
    .cases = [] { return elementCases(2, -2, 2, 0, "a comparison has no rounding"); },
};

}  // namespace lockstep::graph::same_op
