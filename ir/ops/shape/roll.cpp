// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::roll_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis"), shift = c.attributes.get<int64_t>("shift");
  LS_CHECK(checkAxis("roll", "C1", axis, x.shape.rank()));
  int64_t extent = x.shape.extent(static_cast<size_t>(axis));
  if (shift < 0 || shift >= extent) return violated("roll", "C2", fmt::format("shift {} is not in [0, {})", shift, extent));
  return std::vector{x};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  int64_t axis = g.node.attributes.get<int64_t>("axis"), shift = g.node.attributes.get<int64_t>("shift");
  int64_t extent = g.builder.shapeOf(g.operands[0]).extent(static_cast<size_t>(axis));
  return {g.builder.make("roll", {g.cotangents[0]}, {{"axis", axis}, {"shift", (extent - shift) % extent}})};
}

IndexMap map(const Graph& graph, const Node& node) {
  const Shape& shape = graph.shapeOf(node.operands[0]);
  auto axis = static_cast<size_t>(node.attributes.get<int64_t>("axis"));
  int64_t extent = shape.extent(axis), shift = node.attributes.get<int64_t>("shift");
  IndexMap map = identityMap(shape.rank());
  if (shift == 0) return map;
  IndexExpr& at = map.source[axis];
  at.offset = extent - shift;
  at = divMod(at, 2 * extent, 1, extent);
  return map;
}

std::vector<Tensor> evaluateRoll(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  int64_t extent = c.operands[0]->type.shape.extent(axis), shift = c.node.attributes.get<int64_t>("shift");
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    index[axis] = index[axis] >= shift ? index[axis] - shift : index[axis] - shift + extent;
    return x(index);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, int64_t axis, int64_t shift) {
    return OpCase{name, {{f32(std::move(shape))}}, {{"axis", axis}, {"shift", shift}}, 0, kExactReason};
  };
  return {make("first", {4, 5, 6}, 0, 1), make("middle", {4, 5, 6}, 1, 3), make("last", {3, 8}, 1, 7), make("nothing", {7}, 0, 0)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "roll",
    .summary = "The elements moved along one axis by a shift; those that leave at the end come back at the start.",
    .constraints = ConstantList<Constraint>{{"C1", "the axis is within the rank"}, {"C2", "the shift is at least 0 and below the extent"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "which axis"},
                                             {"shift", AttributeKind::Integer, "positions towards the end"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluateRoll,
    .cases = cases,
    .lift =
        [](const LiftContext& c) {
          const int64_t axis = c.node.attributes.get<int64_t>("axis") + 1, shift = c.node.attributes.get<int64_t>("shift");
          return c.builder.make("roll", {c.operands[0]}, {{"axis", axis}, {"shift", shift}});
        },
};

}  // namespace lockstep::graph::roll_op
