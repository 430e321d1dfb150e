// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::index_select_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &idx = c.operands[1];
  int64_t axis = c.attributes.get<int64_t>("axis");
  if (idx.dtype != DType::I32 || idx.shape.rank() != 1)
    return violated("index_select", "C1", fmt::format("the index is {}, wanted i32 with one axis", toString(idx)));
  LS_CHECK(checkAxis("index_select", "C2", axis, x.shape.rank()));
  std::vector<Dim> dims = x.shape.dims();
  dims[static_cast<size_t>(axis)] = idx.shape[0];
  Shape shape(std::move(dims));
  LS_CHECK(checkExtents("index_select", "C3", shape.extents()));
  return std::vector{TensorType{x.dtype, std::move(shape)}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  auto axis = g.node.attributes.get<int64_t>("axis");
  int64_t segments = g.builder.shapeOf(g.operands[0]).extent(static_cast<size_t>(axis));
  return {g.builder.make("segment_sum", {g.cotangents[0], g.operands[1]}, {{"axis", axis}, {"segments", segments}}), ValueId()};
}

kernel::ValueId emit(ElementEmitter& e) {
  std::vector<kernel::ValueId> position(e.index().begin(), e.index().end());
  kernel::ValueId wanted = e.operandAt(1, {position[axisOf(e.node())]});
  return emitSelected(e, axisOf(e.node()), wanted, std::move(position));
}

std::vector<Tensor> evaluateIndexSelect(const EvaluateContext& c) {
  const std::vector<double>& idx = c.operands[1]->data;
  size_t axis = axisOf(c.node);
  return evaluateSelected(c, axis, [&](const std::vector<int64_t>& index) { return idx[static_cast<size_t>(index[axis])]; });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType x, int64_t count, int64_t axis, double lo, double hi) {
    return OpCase{name, {{std::move(x), 0, 1}, {i32({count}), lo, hi}}, {{"axis", axis}}, 0, kExactReason};
  };
  return {make("first", f32({11, 6}), 9, 0, 0, 10), make("middle", f32({3, 7, 5}), 12, 1, 0, 6),
          make("last", f32({4, 9}), 3, 1, 0, 8),    make("outside", f32({5, 3}), 30, 0, -4, 8),
          make("integer", i32({6, 2}), 4, 0, 0, 5), make("truth", boolean({6, 2}), 4, 0, 0, 5)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "index_select",
    .summary = "The slices of an axis that the index names, in its order; an index outside gives a slice of 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the index is i32 with one axis"},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "every extent is at least 1 and the element count is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x", "idx"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of the slices"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit,
                             .scalar_only = true,
                             .selects_rows = [](const Graph& graph,
                                                const Node& node) { return axisOf(node) + 1 < graph.shapeOf(node.operands[0]).rank(); }},
    .alias = NoAlias{},
    .evaluate = evaluateIndexSelect,
    .cases = cases,
    .index = indexAlongAxis,
    .open = [](const OpenContext& c) -> std::optional<std::vector<Opened>> {
      OpenAxes axes = c.operands[0].axes;
      const auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
      if (axes[axis] != 0) return std::nullopt;
      axes[axis] = c.operands[1].axes[0];
      return c.made({c.operands[0].value, c.operands[1].value}, axes);
    },
};

}  // namespace lockstep::graph::index_select_op
