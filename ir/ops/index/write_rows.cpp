// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_updates.h"

namespace lockstep::graph {
namespace {

/// Each element of the result is one of x, or one of the rows where its place along the axis is among theirs.
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const auto axis = node.attributes.get<int64_t>("axis");
  const Shape whole = b.shapeOf(operands[0]);
  const int64_t extent = whole.extent(static_cast<size_t>(axis)), rows = b.shapeOf(operands[1]).extent(static_cast<size_t>(axis));
  const TensorType line{DType::I32, Shape{extent}};
  const ValueId places = b.make("arange", {}, {{"n", extent}, {"dtype", DType::I32}});
  const ValueId from = b.sub(places, b.broadcastTo(operands[2], line.shape));
  const ValueId starts = b.make("greater_equal", {from, b.constant(0, line)}),
                ends = b.make("less", {from, b.constant(static_cast<double>(rows), line)});
  std::vector<int64_t> aligned(whole.rank(), 1);
  aligned[static_cast<size_t>(axis)] = extent;
  const ValueId inside = b.reshape(b.make("logical_and", {starts, ends}), Shape(aligned));
  const ValueId picked = b.make("index_select", {operands[1], from}, {{"axis", axis}});
  return {b.make("where", {b.broadcastTo(inside, whole), picked, operands[0]})};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType x, TensorType rows, int64_t axis, double lo, double hi) {
    return OpCase{name, {{std::move(x), -2, 2}, {std::move(rows), -2, 2}, {i32({}), lo, hi}}, {{"axis", axis}}, 0, kExactReason};
  };
  return {make("first", f32({11, 6}), f32({2, 6}), 0, 0, 9),   make("middle", f32({3, 17, 5}), f32({3, 1, 5}), 1, 0, 16),
          make("last", f32({4, 9}), f32({4, 3}), 1, 0, 6),     make("all", f32({5, 2}), f32({5, 2}), 0, 0, 0),
          make("before", f32({7, 3}), f32({4, 3}), 0, -2, -1), make("past_the_end", f32({7, 3}), f32({4, 3}), 0, 5, 9),
          make("integer", i32({6, 2}), i32({1, 2}), 0, 0, 5)};
}

}  // namespace

extern const OpDef kWriteRowsOp;
constexpr OpDef kWriteRowsOp{
    .name = "write_rows",
    .summary = "The operand with rows of an axis replaced, from a place on that is a value; rows outside of it are left out.",
    .constraints = ConstantList<Constraint>{{"C1", "x and the rows have one element type, of 32 bits"},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "the rows have the shape of x but along the axis, where they are no more"},
                                            {"C4", "the place is a scalar i32"}},
    .operands = ConstantList<std::string_view>{"x", "rows", "at"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of the rows"}},
    .infer = [](const InferContext& c) { return inferRowUpdate("write_rows", c); },
    .gradient = ByDecomposition{},
    .lower = DecomposeLowering{.decompose = decompose, .in_place = "update_rows"},
    .alias = NoAlias{},
    .evaluate = evaluateRowUpdate,
    .cases = cases,
    .index =
        [](const Graph& graph, const Node& node) {
          const auto axis = static_cast<size_t>(node.attributes.get<int64_t>("axis"));
          const int64_t rows = graph.shapeOf(node.operands[1]).extent(axis);
          return IndexUse{
              .operand = 2, .extent = graph.shapeOf(node.operands[0]).extent(axis) - rows + 1, .what = "place", .places = "places"};
        },
};

}  // namespace lockstep::graph
