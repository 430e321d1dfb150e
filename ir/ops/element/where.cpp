// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::where_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &cond = c.operands[0], &a = c.operands[1], &b = c.operands[2];
  if (cond.dtype != DType::Bool) return violated("where", "C1", fmt::format("the condition is {}, wanted bool", toString(cond)));
  if (a.dtype != b.dtype) return violated("where", "C2", fmt::format("the values are {} and {}", toString(a), toString(b)));
  if (cond.shape != a.shape || a.shape != b.shape) {
    return violated("where", "C3",
                    fmt::format("operands have shapes {}, {} and {}", toString(cond.shape), toString(a.shape), toString(b.shape)));
  }
  return std::vector{a};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId cond = g.operands[0], dy = g.cotangents[0], zero = b.constant(0, b.typeOf(dy));
  return {ValueId(), b.make("where", {cond, dy, zero}), b.make("where", {cond, zero, dy})};
}

std::vector<Tensor> evaluateWhere(const EvaluateContext& c) {
  const Tensor &cond = *c.operands[0], &a = *c.operands[1], &b = *c.operands[2];
  Tensor out{c.results[0], {}};
  for (size_t i = 0; i < cond.data.size(); ++i) out.data.push_back(cond.data[i] != 0 ? a.data[i] : b.data[i]);
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, const Shape& shape) {
    return OpCase{name, {{boolean(shape), 0, 1}, {f32(shape), -2, 2}, {f32(shape), -2, 2}}, {}, 0, kExactReason};
  };
  return {make("small", {5, 6}), make("odd", {257}), make("four", {2, 3, 4, 5}), make("scalar", {})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "where",
    .summary = "Elements of a where the condition holds, else of b.",
    .constraints =
        ConstantList<Constraint>{
            {"C1", "the condition is bool"}, {"C2", "a and b have the same element type"}, {"C3", "operands have the same shape"}},
    .operands = ConstantList<std::string_view>{"cond", "a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower =
        ElementLowering{
            .emit = [](ElementEmitter& e) { return e.builder().make(kernel::Op::Select, {e.operand(2), e.operand(1), e.operand(0)}); }},
    .alias = NoAlias{},
    .evaluate = evaluateWhere,
    .cases = cases,
    .algebra = {.chooses = true},
    .range =
        [](const RangeContext& c) {
          return combinedRange({c.graph, c.node, c.operands.subspan(1)},
                               [](IntegerRange a, IntegerRange b) { return IntegerRange{std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; });
        },
};

}  // namespace lockstep::graph::where_op
