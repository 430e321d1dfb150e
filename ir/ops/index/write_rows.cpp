// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_updates.h"

namespace lockstep::graph::write_rows_op {
namespace {

/// Each element of the result is one of x, or one of the rows where its place along the axis is among theirs.
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  if (const DType dtype = b.typeOf(operands[0]).dtype; isPacked(dtype)) {
    const DType wide = isFloat(dtype) ? DType::F32 : DType::I32;
    const auto cast = [&](ValueId x, DType to) { return b.make("cast", {x}, {{"dtype", to}}); };
    return {cast(b.make("write_rows", {cast(operands[0], wide), cast(operands[1], wide), operands[2]}, node.attributes), dtype)};
  }
  const auto axis = node.attributes.get<int64_t>("axis");
  const auto along = static_cast<size_t>(axis);
  const Shape whole = b.shapeOf(operands[0]);
  const int64_t extent = whole.extent(along), rows = b.shapeOf(operands[1]).extent(along);
  const bool is_own = b.shapeOf(operands[2]).rank() > 0;
  // Where each place of the axis is among the rows: one line, or one per entry of the first axis.
  const Shape lines = is_own ? Shape{whole.extent(0), extent} : Shape{extent};
  const TensorType line{DType::I32, lines};
  const ValueId places = b.broadcastTo(b.make("arange", {}, {{"n", extent}, {"dtype", DType::I32}}), lines);
  const ValueId at = is_own ? b.reshape(operands[2], Shape{whole.extent(0), 1}) : operands[2];
  const ValueId from = b.sub(places, b.broadcastTo(at, lines));
  const ValueId starts = b.make("greater_equal", {from, b.constant(0, line)}),
                ends = b.make("less", {from, b.constant(static_cast<double>(rows), line)});
  std::vector<int64_t> aligned(whole.rank(), 1);
  aligned[along] = extent;
  if (is_own) aligned[0] = whole.extent(0);
  const auto spread = [&](ValueId x) { return b.broadcastTo(b.reshape(x, Shape(aligned)), whole); };
  const ValueId picked = is_own ? b.make("take_along_axis", {operands[1], spread(from)}, {{"axis", axis}})
                                : b.make("index_select", {operands[1], from}, {{"axis", axis}});
  return {b.make("where", {spread(b.make("logical_and", {starts, ends})), picked, operands[0]})};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType x, TensorType rows, int64_t axis, double lo, double hi, Shape at = {}) {
    return OpCase{name, {{std::move(x), -2, 2}, {std::move(rows), -2, 2}, {i32(std::move(at)), lo, hi}}, {{"axis", axis}}, 0, kExactReason};
  };
  return {make("first", f32({11, 6}), f32({2, 6}), 0, 0, 9),
          make("middle", f32({3, 17, 5}), f32({3, 1, 5}), 1, 0, 16),
          make("last", f32({4, 9}), f32({4, 3}), 1, 0, 6),
          make("all", f32({5, 2}), f32({5, 2}), 0, 0, 0),
          make("before", f32({7, 3}), f32({4, 3}), 0, -2, -1),
          make("past_the_end", f32({7, 3}), f32({4, 3}), 0, 5, 9),
          make("integer", i32({6, 2}), i32({1, 2}), 0, 0, 5),
          make("own", f32({5, 2, 17, 3}), f32({5, 2, 3, 3}), 2, 0, 14, {5}),
          make("packed", {DType::BF16, Shape{3, 7, 6}}, {DType::BF16, Shape{3, 2, 6}}, 1, 0, 5),
          make("own_last", f32({7, 9}), f32({7, 2}), 1, -3, 10, {7})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "write_rows",
    .summary = "The operand with rows of an axis replaced, from a place on that is a value; rows outside of it are left out.",
    .constraints = ConstantList<Constraint>{{"C1", kRowsRule},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "the rows have the shape of x but along the axis, where they are no more"},
                                            {"C4", kPlaceRule}},
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

}  // namespace lockstep::graph::write_rows_op
