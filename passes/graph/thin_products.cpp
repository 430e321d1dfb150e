// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/thin_products.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/lanes.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/scaled_vector.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Whether a matrix is stored in fewer bits than it is multiplied in: it is made, element by element, of tensors that take at most half of
/// its bytes together.
bool isWidened(const Graph& graph, ValueId matrix) {
  std::set<ValueId> seen;
  uint64_t bytes = 0;
  for (std::vector<ValueId> open{matrix}; !open.empty();) {
    const ValueId value = throughViews(graph, open.back()).base;
    const int64_t elements = leastSeen(graph, open.back());
    open.pop_back();
    if (!seen.insert(value).second) continue;
    const Node& node = graph.definition(value);
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    if (node.operands.empty()) {
      bytes += leafKind(node) == LeafKind::Constant ? 0 : TensorType{graph.typeOf(value).dtype, Shape{elements}}.byteSize();
    } else if (element != nullptr && !element->transcendental && !element->scalar_only) {
      open.insert(open.end(), node.operands.begin(), node.operands.end());
    } else {
      return false;
    }
  }
  return bytes > 0 && bytes <= graph.typeOf(matrix).byteSize() / 2;
}

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

/// Numbers once per sum, by the number, the matrix and the axis: products of the same vector share them.
using Scales = std::map<std::tuple<ValueId, int64_t, int64_t, int64_t>, ValueId>;

/// What matrices are multiplied by, by the vector, the axis of the sums and whether its scale comes after them: once for all matrices.
using Products = std::map<std::tuple<ValueId, int64_t, bool>, ValueId>;

struct Made {
  Scales scales;
  Products products;
};

bool sumProduct(const Graph& graph, const Node& node, Rewriter& rewriter, Made& made) {
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
  const bool is_widened = isWidened(b.graph(), matrix), is_short = is_widened && shape.k <= cost::kLongestWidenedRow;
  if (by_rows && b.shapeOf(matrix).extent(0) < (is_short ? cost::kLeastWidenedRows : cost::kLeastThinRows)) return false;
  const int64_t axis = by_rows ? 1 : 0;
  const Shape of_matrix(b.shapeOf(matrix));
  // By rows each sum of the scale takes as many operations as that of the product, which wait for memory where the matrix is packed. Rows
  // that no kernel can hold would have a kernel of their own for it, and a large matrix gains little from one level less.
  const bool takes_scale =
      !by_rows || (is_widened && shape.k <= cost::kMostHeldColumns && of_matrix.elementCount() <= cost::kMostScaledBeside);
  const ScaledVector scaled = takes_scale ? scaledVector(graph, vector) : ScaledVector{{vector}, {}};
  ValueId& product = made.products[{vector, axis, !scaled.scales.empty()}];
  if (!product.valid()) product = productOf(rewriter, scaled, by_rows ? Shape{1, shape.k} : Shape{shape.k, 1});
  ValueId sums = b.sum(b.mul(matrix, b.broadcastTo(product, of_matrix)), axis, false);
  for (const ValueId scale : scaled.scales) {
    ValueId& beside = made.scales[{scale, of_matrix.extent(0), of_matrix.extent(1), axis}];
    if (!beside.valid()) beside = scaleBeside(rewriter, graph, scale, of_matrix, axis);
    sums = b.mul(sums, beside);
  }
  b.name(sums, graph[node.results[0]].name);
  rewriter.set(node.results[0], b.reshape(sums, graph.shapeOf(node.results[0])));
  return true;
}

}  // namespace

Graph thinProducts(const Graph& graph) {
  Rewriter rewriter(graph);
  Made made;
  for (const NodeId id : graph.body().nodes) {
    if (!sumProduct(graph, graph[id], rewriter, made)) rewriter.copy(graph[id]);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return removeDead(rewriter.take());
}

}  // namespace lockstep::passes
