// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::embedding_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &table = c.operands[0], &idx = c.operands[1];
  if (table.dtype != DType::F32 || table.shape.rank() != 2)
    return violated("embedding", "C1", fmt::format("the table is {}, wanted f32 with two axes", toString(table)));
  if (idx.dtype != DType::I32) return violated("embedding", "C2", fmt::format("the index is {}, wanted i32", toString(idx)));
  std::vector<Dim> dims = idx.shape.dims();
  dims.push_back(table.shape[1]);
  Shape shape(std::move(dims));
  LS_CHECK(checkExtents("embedding", "C3", shape.extents()));
  return std::vector{f32(std::move(shape))};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  int64_t entries = b.shapeOf(g.operands[0]).extent(0), width = b.shapeOf(g.operands[0]).extent(1);
  int64_t rows = b.shapeOf(g.operands[1]).elementCount();
  ValueId idx = b.reshape(g.operands[1], Shape{rows}), dy = b.reshape(g.cotangents[0], Shape{rows, width});
  return {b.make("segment_sum", {dy, idx}, {{"axis", int64_t{0}}, {"segments", entries}}), ValueId()};
}

kernel::ValueId emit(ElementEmitter& e) {
  std::span<const kernel::ValueId> index = e.index();
  kernel::ValueId row = e.operandAt(1, {index.begin(), index.end() - 1});
  return emitSelected(e, 0, row, {row, index.back()});
}

std::vector<Tensor> evaluateEmbedding(const EvaluateContext& c) {
  const Tensor &table = *c.operands[0], &idx = *c.operands[1];
  int64_t entries = table.type.shape.extent(0), width = table.type.shape.extent(1);
  Tensor out{c.results[0], {}};
  for (double entry : idx.data) {
    bool inside = entry >= 0 && entry < static_cast<double>(entries);
    for (int64_t d = 0; d < width; ++d)
      out.data.push_back(inside ? table.data[static_cast<size_t>(static_cast<int64_t>(entry) * width + d)] : 0.0);
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape table, Shape idx, double lo, double hi) {
    return OpCase{name, {{f32(std::move(table)), -2, 2}, {i32(std::move(idx)), lo, hi}}, {}, 0, kExactReason};
  };
  return {make("rows", {11, 6}, {4, 9}, 0, 10), make("outside", {5, 8}, {37}, -3, 8), make("scalar", {3, 7}, {}, 1, 1),
          make("one_entry", {1, 4}, {6}, -1, 1)};
}

std::optional<std::vector<Opened>> openEmbedding(const OpenContext& c) {
  if (isOpen(c.operands[0].axes)) return std::nullopt;
  OpenAxes axes = c.operands[1].axes;
  axes.push_back(0);
  return c.made({c.operands[0].value, c.operands[1].value}, axes);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "embedding",
    .summary = "Rows of a table by their index; an index outside gives a row of 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the table is f32 with two axes"},
                                            {"C2", "the index is i32"},
                                            {"C3", "every extent is at least 1 and the element count is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"table", "idx"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .selects_rows = [](const Graph&, const Node&) { return true; }},
    .alias = NoAlias{},
    .evaluate = evaluateEmbedding,
    .cases = cases,
    .index = [](const Graph& graph, const Node& node) -> IndexUse {
      return {.operand = 1, .extent = graph.shapeOf(node.operands[0]).extent(0), .places = "rows of the table"};
    },
    .open = openEmbedding,
};

}  // namespace lockstep::graph::embedding_op
