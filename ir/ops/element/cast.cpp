// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  return std::vector{TensorType{c.attributes.get<DType>("dtype"), c.operands[0].shape}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  bool is_float = g.builder.typeOf(g.operands[0]).dtype == DType::F32 && g.builder.typeOf(g.results[0]).dtype == DType::F32;
  return {is_float ? g.cotangents[0] : ValueId()};
}

// WGSL's own conversion stops at the largest f32 below the highest integer and says nothing of a NaN.
kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  DType from = e.graph().typeOf(e.node().operands[0]).dtype, to = e.graph().typeOf(e.node().results[0]).dtype;
  Lanes::Id x = e.operand(0);
  if (from == to) return x;
  // By the bits, so that a NaN is no 0 on any device.
  if (from == DType::F32 && to == DType::Bool) return m.make(kernel::Op::Ne, {m.masked(m.bits(x), INT32_MAX), m.integer(0)});
  kernel::TypeTable& types = e.builder().types();
  Lanes::Id converted = e.builder().convert(types.scalarOrVector(registerScalar(to), e.width()), x);
  if (from != DType::F32) return converted;
  const double highest = static_cast<double>(rangeOf(to)->hi);
  Lanes::Id limit = laneConstant(e, to, highest), zero = laneConstant(e, to, 0);
  Lanes::Id above = m.make(kernel::Op::Ge, {x, m.number(highest + 1)});
  Lanes::Id saturated = m.select(above, limit, converted);
  return m.select(m.isNaN(x), zero, saturated);
}

std::vector<Tensor> evaluateCast(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  DType from = c.operands[0]->type.dtype, to = out.type.dtype;
  for (double& value : out.data) {
    if (to == DType::Bool) {
      value = value != 0 ? 1 : 0;
    } else if (to != DType::F32 && from == DType::F32) {
      const double lo = static_cast<double>(rangeOf(to)->lo), hi = static_cast<double>(rangeOf(to)->hi);
      value = std::isnan(value) ? 0 : std::trunc(std::clamp(value, lo, hi));
    } else if (to == DType::I32 && value >= 0x1p31) {
      value -= 0x1p32;
    } else if (to == DType::U32 && value < 0) {
      value += 0x1p32;
    }
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  static constexpr std::array kDTypes{DType::F32, DType::I32, DType::U32, DType::Bool};
  static constexpr std::array kNames{"f32_f32", "f32_i32", "f32_u32", "f32_bool", "i32_f32",  "i32_i32",  "i32_u32",  "i32_bool",
                                     "u32_f32", "u32_i32", "u32_u32", "u32_bool", "bool_f32", "bool_i32", "bool_u32", "bool_bool"};
  std::vector<OpCase> cases;
  for (DType from : kDTypes) {
    for (DType to : kDTypes) {
      double lo = from == DType::U32 || from == DType::Bool ? 0 : -3, hi = from == DType::Bool ? 1 : 3;
      if (from == DType::U32) hi = 0x1p32 - 1;
      bool rounds = from == DType::U32 && to == DType::F32;
      cases.push_back({kNames[cases.size()],
                       {{{from, {7, 11}}, lo, hi}},
                       {{"dtype", to}},
                       rounds ? 6e-8 : 0.0,
                       rounds ? "one rounding to nearest an element" : kExactReason});
    }
  }
  // Far beyond what an integer holds, on both sides.
  cases.push_back({"saturated_i32", {{f32({257}), -5e9, 5e9}}, {{"dtype", DType::I32}}, 0, kExactReason});
  cases.push_back({"saturated_u32", {{f32({257}), -5e9, 9e9}}, {{"dtype", DType::U32}}, 0, kExactReason});
  return cases;
}

}  // namespace

extern const OpDef kCastOp;
constexpr OpDef kCastOp{
    .name = "cast",
    .summary =
        "The elements as another type: f32 becomes an integer by truncation, saturated and with NaN as 0; i32 and u32 keep the "
        "bits; a bool is whether x differs from 0.",
    .constraints = ConstantList<Constraint>{},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"dtype", AttributeKind::DType, "element type of the result"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = evaluateCast,
    .cases = cases,
    .range = [](const RangeContext& c) -> std::vector<KnownRange> {
      const DType to = c.graph.typeOf(c.node.results[0]).dtype;
      return {c.operands[0] ? unwrapped(to, *c.operands[0]) : rangeOf(to)};
    },
};

}  // namespace lockstep::graph
