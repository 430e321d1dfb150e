// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "ir/graph/packed_element.h"
#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph::cast_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  return std::vector{TensorType{c.attributes.get<DType>("dtype"), c.operands[0].shape}};
}

// The cotangent of a float of any type is an f32, so rounding passes it on as it is.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  const DType from = b.typeOf(g.operands[0]).dtype;
  if (!isFloat(from) || !isFloat(b.typeOf(g.results[0]).dtype)) return {ValueId()};
  const Attribute* rounds = g.node.attributes.find("rounds_gradient");
  if (rounds == nullptr || !std::get<bool>(*rounds)) return {g.cotangents[0]};
  const ValueId rounded = b.make("cast", {g.cotangents[0]}, {{"dtype", from}});
  return {b.make("cast", {rounded}, {{"dtype", DType::F32}, {"rounds_gradient", true}})};
}

/// WGSL's own conversion stops at the largest f32 below the highest integer and says nothing of a NaN.
kernel::ValueId emitInteger(ElementEmitter& e, Lanes& m, Lanes::Id x, DType to) {
  kernel::TypeId type = e.builder().types().scalarOrVector(registerScalar(to), e.width());
  const IntegerRange range = *rangeOf(to);
  const Lanes::Id zero = laneConstant(e, to, 0);
  if (isPacked(to)) {
    const Lanes::Id clamped = m.within(x, static_cast<double>(range.lo), static_cast<double>(range.hi));
    return m.select(m.isNaN(x), zero, e.builder().convert(type, clamped));
  }
  const Lanes::Id converted = e.builder().convert(type, x), limit = laneConstant(e, to, static_cast<double>(range.hi));
  const Lanes::Id above = m.make(kernel::Op::Ge, {x, m.number(static_cast<double>(range.hi) + 1)});
  return m.select(m.isNaN(x), zero, m.select(above, limit, converted));
}

kernel::ValueId emit(ElementEmitter& e) {
  Lanes m(e);
  DType from = e.graph().typeOf(e.node().operands[0]).dtype, to = e.graph().typeOf(e.node().results[0]).dtype;
  Lanes::Id x = e.operand(0);
  if (from == to) return x;
  if (isFloat(from)) {
    // By the bits, so that a NaN is no 0 on any device.
    if (to == DType::Bool) return m.make(kernel::Op::Ne, {m.masked(m.bits(x), INT32_MAX), m.integer(0)});
    if (!isFloat(to)) return emitInteger(e, m, x, to);
  } else {
    x = e.builder().convert(e.builder().types().scalarOrVector(registerScalar(to), e.width()), x);
  }
  return isPacked(to) ? emitRounded(e.builder(), to, x) : x;
}

/// The low bits of an integer.
double lowBits(double value, DType dtype) { return decodeElement(dtype, encodeElement(dtype, value)); }

std::vector<Tensor> evaluateCast(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  DType from = c.operands[0]->type.dtype, to = out.type.dtype;
  if (from == to) return {std::move(out)};
  for (double& value : out.data) {
    if (to == DType::Bool) {
      value = value != 0 ? 1 : 0;
    } else if (isFloat(to)) {
      if (isPacked(to)) value = roundedTo(to, value);
    } else if (isFloat(from)) {
      const double lo = static_cast<double>(rangeOf(to)->lo), hi = static_cast<double>(rangeOf(to)->hi);
      value = std::isnan(value) ? 0 : std::trunc(std::clamp(value, lo, hi));
    } else {
      value = lowBits(value, to);
    }
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  std::vector<OpCase> cases;
  // Names live as long as the program, as those of other cases do.
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (DType from : kDTypes) {
      for (DType to : kDTypes) names.push_back(fmt::format("{}_{}", toString(from), toString(to)));
    }
    return names;
  }();
  for (DType from : kDTypes) {
    for (DType to : kDTypes) {
      const std::optional<IntegerRange> range = rangeOf(from);
      const bool is_wide = from == DType::U32 || isPacked(from);
      double lo = -3, hi = 3;
      if (range) lo = std::max(lo, static_cast<double>(range->lo)), hi = std::min(hi, static_cast<double>(range->hi));
      // Integers that f32 has: the value of others depends on the way that a device rounds.
      if (range && is_wide) lo = static_cast<double>(range->lo), hi = isFloat(to) && isPacked(to) ? 0xffff : static_cast<double>(range->hi);
      const bool rounds = from == DType::U32 && to == DType::F32;
      cases.push_back({kNames[cases.size()],
                       {{{from, {7, 11}}, lo, std::min(hi, range ? static_cast<double>(range->hi) : hi)}},
                       {{"dtype", to}},
                       rounds ? 6e-8 : 0.0,
                       rounds ? "one rounding to nearest an element" : "the rounding to a packed type is that of every device"});
    }
  }
  // Far beyond what an integer holds, on both sides.
  for (const auto& [name, dtype, highest] :
       std::initializer_list<std::tuple<std::string_view, DType, double>>{{"saturated_i32", DType::I32, 5e9},
                                                                          {"saturated_u32", DType::U32, 9e9},
                                                                          {"saturated_i8", DType::I8, 300},
                                                                          {"saturated_u8", DType::U8, 600},
                                                                          {"saturated_u16", DType::U16, 90000}})
    cases.push_back({name, {{f32({257}), -highest, highest}}, {{"dtype", dtype}}, 0, kExactReason});
  cases.push_back({"low_bits_i8", {{i32({257}), -70000, 70000}}, {{"dtype", DType::I8}}, 0, kExactReason});
  cases.push_back({"low_bits_u8", {{i32({257}), -70000, 70000}}, {{"dtype", DType::U8}}, 0, kExactReason});
  cases.push_back({"low_bits_u16", {{i32({257}), -2000000, 2000000}}, {{"dtype", DType::U16}}, 0, kExactReason});
  cases.push_back({"infinite_f16", {{f32({257}), -1e5, 1e5}}, {{"dtype", DType::F16}}, 0, kExactReason});
  cases.push_back({"small_f16", {{f32({257}), -1e-4, 1e-4}}, {{"dtype", DType::F16}}, 0, kExactReason});
  return cases;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "cast",
    .summary =
        "The elements as another type: a float becomes an integer by truncation, saturated and with NaN as 0; integers keep their low "
        "bits; a float is rounded to nearest even by a type with fewer bits; a bool is whether x differs from 0.",
    .constraints = ConstantList<Constraint>{},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"dtype", AttributeKind::DType, "element type of the result"},
                                             {"rounds_gradient", AttributeKind::Boolean,
                                              "the gradient of a float is rounded to the operand's type, too", false}},
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

}  // namespace lockstep::graph::cast_op
