// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/thin_products.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/scaled_vector.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Whether neighbours along the first axis of a matrix are neighbours in memory.
bool liesByColumns(const Graph& graph, ValueId matrix) {
  const Shape& shape = graph.shapeOf(matrix);
  const ViewedValue viewed = throughWidened(graph, matrix);
  const IndexMap swap{.source = {axisExpr(1), axisExpr(0)}, .guards = {}};
  return readsNeighbours(graph, viewed.base, compose(swap, viewed.map, shape), Shape{shape.extent(1), shape.extent(0)});
}

bool hasSymbols(const Shape& shape) {
  return std::ranges::any_of(shape.dims(), [](const Dim& dim) { return dim.isSymbol(); });
}

/// Numbers once per column, by the number and the matrix: products of the same vector share them.
using Scales = std::map<std::tuple<ValueId, int64_t, int64_t>, ValueId>;

bool sumProduct(const Graph& graph, const Node& node, Rewriter& rewriter, Scales& scales) {
  static const OpDef* const matmul = &op("matmul");
  if (node.op != matmul) return false;
  // Sums may not take in what lies after an open extent, which products fill up.
  if (std::ranges::any_of(node.operands, [&](ValueId operand) { return hasSymbols(graph.shapeOf(operand)); })) return false;
  const ContractShape shape = std::get<ContractLowering>(*node.op->lower).shape(graph, node);
  const bool is_thin = shape.batch == 1 && (shape.m == 1) != (shape.n == 1);
  if (!is_thin || shape.m * shape.n * shape.k < cost::kLeastThinProducts) return false;

  Builder& b = rewriter.builder();
  b.setLocation(node.location);
  // The matrix as [rows, I] or [I, columns], the vector beside it.
  ValueId matrix = rewriter[node.operands[shape.n == 1 ? 0 : 1]];
  const ValueId vector = node.operands[shape.n == 1 ? 1 : 0];
  bool by_rows = shape.n == 1;
  matrix = b.reshape(matrix, by_rows ? Shape{shape.m, shape.k} : Shape{shape.k, shape.n});
  if (liesByColumns(b.graph(), matrix)) {
    matrix = b.swapLastAxes(matrix);
    by_rows = !by_rows;
  }
  if (by_rows && b.shapeOf(matrix).extent(0) < cost::kLeastThinRows) return false;
  const int64_t axis = by_rows ? 1 : 0;
  const Shape of_matrix(b.shapeOf(matrix));
  // Sums by rows do not share a kernel with others of their rows, so they take the vector as it is.
  const ScaledVector scaled = by_rows ? ScaledVector{{vector}, {}} : scaledVector(graph, vector);
  const ValueId product = productOf(rewriter, scaled, by_rows ? Shape{1, shape.k} : Shape{shape.k, 1});
  ValueId sums = b.sum(b.mul(matrix, b.broadcastTo(product, of_matrix)), axis, false);
  for (const ValueId scale : scaled.scales) {
    ValueId& beside = scales[{scale, of_matrix.extent(0), of_matrix.extent(1)}];
    if (!beside.valid()) beside = scaleBeside(rewriter, graph, scale, of_matrix);
    sums = b.mul(sums, beside);
  }
  b.name(sums, graph[node.results[0]].name);
  rewriter.set(node.results[0], b.reshape(sums, graph.shapeOf(node.results[0])));
  return true;
}

}  // namespace

Graph thinProducts(const Graph& graph) {
  Rewriter rewriter(graph);
  Scales scales;
  for (const NodeId id : graph.body().nodes) {
    if (!sumProduct(graph, graph[id], rewriter, scales)) rewriter.copy(graph[id]);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return removeDead(rewriter.take());
}

}  // namespace lockstep::passes
