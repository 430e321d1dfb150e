// SPDX-License-Identifier: Apache-2.0
#include "passes/split_reductions.h"

#include <cmath>

#include "ir/graph/op_def.h"
#include "passes/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

// Below this one workgroup is done before a second level would have started.
constexpr int64_t kShortest = 16384;
// The same for the inner axis of a contraction, and the length of a part that is still worth a workgroup.
constexpr int64_t kShortestInner = 512, kShortestPart = 64;
constexpr int64_t kMostParts = 16;
// A handful of cores is busy with few workgroups already.
constexpr int64_t kFewUnits = 8;

/// The divisor of `length` nearest above its square root, 0 when there is none to speak of.
int64_t firstStage(int64_t length) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  for (int64_t columns = root; columns < length / 16; ++columns) {
    if (length % columns == 0) return columns;
  }
  return 0;
}

/// The largest power of two of equal parts of `length` elements such that `groups` workgroups a part stay within `most`.
int64_t partsOf(int64_t length, int64_t shortest, int64_t groups, int64_t most) {
  int64_t parts = 1;
  while (parts < kMostParts && length % (2 * parts) == 0 && length / (2 * parts) >= shortest && groups * 2 * parts <= most) parts *= 2;
  return parts;
}

struct Splitter {
  const Graph& graph;
  const int64_t units;
  Rewriter rewriter;

  Builder& b() { return rewriter.builder(); }

  /// A reduction of everything: the rows are free to choose.
  bool splitWhole(const Node& node) {
    int64_t length = graph.shapeOf(node.operands[0]).elementCount();
    int64_t columns = length < kShortest ? 0 : firstStage(length);
    if (columns == 0) return false;
    ValueId rows = b().reshape(rewriter[node.operands[0]], Shape{length / columns, columns});
    ValueId partial = b().make(*node.op->name, {rows}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    ValueId total = b().make(*node.op->name, {partial}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
    rewriter.set(node.results[0], b().reshape(total, graph.shapeOf(node.results[0])));
    return true;
  }

  /// A reduction over leading axes to few results (the gradient of a gain or a bias): blocks of rows, then the blocks.
  bool splitLeading(const Node& node, const ReduceLowering& reduce) {
    std::vector<int64_t> axes = reduce.axes(graph, node);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != static_cast<int64_t>(i)) return false;
    }
    int64_t results = graph.shapeOf(node.results[0]).elementCount();
    int64_t length = graph.shapeOf(node.operands[0]).elementCount() / results;
    if (units < kFewUnits || length * results < 2 * kShortest) return false;
    int64_t parts = partsOf(length, kShortestPart, results, 16 * units);
    if (parts == 1) return false;
    ValueId blocks = b().reshape(rewriter[node.operands[0]], Shape{parts, length / parts, results});
    ValueId partial = b().make(*node.op->name, {blocks}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    ValueId total = b().make(*node.op->name, {partial}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
    rewriter.set(node.results[0], b().reshape(total, graph.shapeOf(node.results[0])));
    return true;
  }

  /// A small matrix product with a long inner axis (the gradient of a weight): one product a part, then their sum.
  bool splitInner(const Node& node) {
    const Shape &a = graph.shapeOf(node.operands[0]), &right = graph.shapeOf(node.operands[1]);
    if (*node.op->name != "matmul" || a.rank() != 2 || right.rank() != 2 || units < kFewUnits) return false;
    int64_t m = a.extent(0), k = a.extent(1), n = right.extent(1);
    if (k < kShortestInner) return false;
    int64_t tiles = ((m + 15) / 16) * ((n + 15) / 16);
    int64_t parts = partsOf(k, kShortestPart, tiles, 4 * units);
    if (parts == 1) return false;
    ValueId left = b().permute(b().reshape(rewriter[node.operands[0]], Shape{m, parts, k / parts}), {1, 0, 2});
    ValueId products = b().make("matmul", {left, b().reshape(rewriter[node.operands[1]], Shape{parts, k / parts, n})});
    rewriter.set(node.results[0], b().make("sum", {products}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}}));
    return true;
  }

  bool split(const Node& node) {
    if (units < 2) return false;
    b().setLocation(node.location);
    if (const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower))
      return graph.shapeOf(node.results[0]).elementCount() == 1 ? splitWhole(node) : splitLeading(node, *reduce);
    return std::holds_alternative<ContractLowering>(*node.op->lower) && splitInner(node);
  }
};

}  // namespace

Result<Graph> splitReductions(const Graph& graph, const SplitReductionsConfig& config) {
  Splitter splitter{graph, config.parallel_units, Rewriter(graph)};
  for (NodeId id : graph.body().nodes) {
    if (!splitter.split(graph[id])) splitter.rewriter.copy(graph[id]);
  }
  Rewriter& rewriter = splitter.rewriter;
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
