// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::take_along_axis_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &idx = c.operands[1];
  int64_t axis = c.attributes.get<int64_t>("axis");
  if (idx.dtype != DType::I32) return violated("take_along_axis", "C1", fmt::format("the index is {}, wanted i32", toString(idx)));
  LS_CHECK(checkAxis("take_along_axis", "C2", axis, x.shape.rank()));
  LS_CHECK(checkAlike("take_along_axis", "C3", x.shape, idx.shape, axis));
  return std::vector{TensorType{x.dtype, idx.shape}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  ValueId zero = g.builder.constant(0, Shape(g.builder.shapeOf(g.operands[0])));
  return {g.builder.make("scatter_add", {zero, g.operands[1], g.cotangents[0]}, {{"axis", g.node.attributes.get<int64_t>("axis")}}),
          ValueId()};
}

kernel::ValueId emit(ElementEmitter& e) {
  std::vector<kernel::ValueId> position(e.index().begin(), e.index().end());
  kernel::ValueId wanted = e.operandAt(1, position);
  return emitSelected(e, axisOf(e.node()), wanted, std::move(position));
}

std::vector<Tensor> evaluateTakeAlongAxis(const EvaluateContext& c) {
  return evaluateSelected(c, axisOf(c.node), ElementReader(*c.operands[1]));
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType x, Shape idx, int64_t axis, double lo, double hi) {
    return OpCase{name, {{std::move(x)}, {i32(std::move(idx)), lo, hi}}, {{"axis", axis}}, 0, kExactReason};
  };
  return {make("middle", f32({4, 7, 3}), {4, 2, 3}, 1, 0, 6), make("last", f32({5, 9}), {5, 12}, 1, 0, 8),
          make("first", f32({6, 11}), {3, 11}, 0, 0, 5),      make("outside", f32({4, 5}), {4, 8}, 1, -3, 7),
          make("one_each", f32({33, 6}), {33, 1}, 1, 0, 5),   make("integer", i32({4, 5}), {4, 3}, 1, 0, 4)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "take_along_axis",
    .summary = "Elements of an axis at the positions of the index, each beside its own other positions; an index outside gives 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the index is i32"},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "the index has the operand's extents along all other axes"}},
    .operands = ConstantList<std::string_view>{"x", "idx"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis that the index counts along"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit,
                             .scalar_only = true,
                             .within_row = [](const Graph& graph,
                                              const Node& node) { return axisOf(node) + 1 == graph.shapeOf(node.operands[0]).rank(); }},
    .alias = NoAlias{},
    .evaluate = evaluateTakeAlongAxis,
    .cases = cases,
    .index = indexAlongAxis,
    .open = [](const OpenContext& c) -> std::optional<std::vector<Opened>> {
      OpenAxes axes = c.operands[0].axes;
      const auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
      if (axes[axis] != 0) return std::nullopt;
      axes[axis] = c.operands[1].axes[axis];
      const std::optional<OpenAxes> joined = joinedAxes(axes, c.operands[1].axes);
      return joined ? std::optional(c.made({c.operands[0].value, c.operands[1].value}, *joined)) : std::nullopt;
    },
};

}  // namespace lockstep::graph::take_along_axis_op
