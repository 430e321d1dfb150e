// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/ops/support/common.h"

namespace lockstep::graph::flip_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  const auto& axes = c.attributes.get<std::vector<int64_t>>("axes");
  for (int64_t axis : axes) LS_CHECK(checkAxis("flip", "C1", axis, x.shape.rank()));
  if (std::adjacent_find(axes.begin(), axes.end(), std::greater_equal<>()) != axes.end())
    return violated("flip", "C1", fmt::format("axes {} are not ascending and unique", fmt::join(axes, ",")));
  return std::vector{x};
}

std::vector<ValueId> gradient(const GradientContext& g) { return {g.builder.make("flip", {g.cotangents[0]}, g.node.attributes)}; }

IndexMap map(const Graph& graph, const Node& node) {
  const Shape& shape = graph.shapeOf(node.operands[0]);
  IndexMap map = identityMap(shape.rank());
  for (int64_t axis : node.attributes.get<std::vector<int64_t>>("axes")) {
    IndexExpr& expr = map.source[static_cast<size_t>(axis)];
    int64_t last = shape.extent(static_cast<size_t>(axis)) - 1;
    if (last == 0) continue;
    expr = axisExpr(static_cast<int32_t>(axis), -1);
    expr.offset = last;
  }
  return map;
}

std::vector<Tensor> evaluateFlip(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  const Shape& shape = c.operands[0]->type.shape;
  const auto& axes = c.node.attributes.get<std::vector<int64_t>>("axes");
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    for (int64_t axis : axes) {
      auto at = static_cast<size_t>(axis);
      index[at] = shape.extent(at) - 1 - index[at];
    }
    return x(index);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, std::vector<int64_t> axes) {
    return OpCase{name, {{f32(std::move(shape))}}, {{"axes", std::move(axes)}}, 0, kExactReason};
  };
  return {make("first", {4, 5, 6}, {0}), make("last_two", {4, 5, 6}, {1, 2}), make("all", {3, 1, 7}, {0, 1, 2}), make("none", {7}, {})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "flip",
    .summary = "The operand with the order along some axes reversed.",
    .constraints = ConstantList<Constraint>{{"C1", "axes are ascending, unique and within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are reversed"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluateFlip,
    .cases = cases,
};

}  // namespace lockstep::graph::flip_op
