// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph::ordering_op {
namespace {

using kernel::Op;

// Negative floats order backwards by their bits, so all but the sign is turned over. By bits alone: a driver may take comparisons with NaN
// as it likes.
kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  kernel::TypeId type = b.types().scalarOrVector(kernel::Scalar::I32, e.width());
  auto constant = [&](int32_t value) { return laneConstant(e, DType::I32, value); };
  kernel::ValueId bits = b.makeAs(Op::Bitcast, type, {e.operand(0)});
  kernel::ValueId magnitude = b.make(Op::And, {bits, constant(INT32_MAX)});
  kernel::ValueId turned = b.make(Op::Xor, {bits, constant(INT32_MAX)});
  kernel::ValueId key = b.make(Op::Select, {bits, turned, b.make(Op::Lt, {bits, constant(0)})});
  // Both zeros are equal.
  key = b.make(Op::Select, {key, constant(0), b.make(Op::Eq, {magnitude, constant(0)})});
  return b.make(Op::Select, {key, constant(INT32_MAX), b.make(Op::Gt, {magnitude, constant(0x7F800000)})});
}

double orderOf(double x) {
  if (std::isnan(x)) return INT32_MAX;
  if (x == 0) return 0;
  auto bits = static_cast<double>(std::bit_cast<uint32_t>(static_cast<float>(std::abs(x))));
  return x > 0 ? bits : -bits - 1;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "ordering",
    .summary = "An integer that orders as the number does, with NaN above everything: what sorting compares.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) -> Result<std::vector<TensorType>> {
      LS_TRY(std::vector<TensorType> same, inferSame("ordering", c, {DType::F32}));
      return std::vector{i32(same[0].shape)};
    },
    .gradient = NotDifferentiable{"the result is an integer"},
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateEach(c, orderOf); },
    .cases = [] { return elementCases(1, -8, 8, 0, "the bits of the operand"); },
};

}  // namespace lockstep::graph::ordering_op
