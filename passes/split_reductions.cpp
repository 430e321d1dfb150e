// SPDX-License-Identifier: Apache-2.0
#include "passes/split_reductions.h"

#include <algorithm>
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
constexpr uint64_t kWord = 4;

/// How many elements a partial sum takes: the divisor of `length` nearest above its square root. 0 when there is none to speak of.
int64_t columnsOf(int64_t length) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  for (int64_t columns = root; columns < length / 16; ++columns) {
    if (length % columns == 0) return columns;
  }
  return 0;
}

/// The same for a tensor that is not bound whole: its slices begin where both the elements and the partial sums have an offset that can be
/// bound, every kParameterAlignment rows.
int64_t columnsWithin(int64_t length, uint64_t max_binding_bytes) {
  for (auto columns = static_cast<int64_t>(max_binding_bytes / kWord / kParameterAlignment); columns > 1; --columns) {
    if (length % columns == 0) return columns;
  }
  return 0;
}

/// The row lengths of the stages before the last one; none when one stage does.
std::vector<int64_t> stagesOf(int64_t length, const SplitReductionsConfig& config) {
  auto aboveLimit = [&] { return static_cast<uint64_t>(length) * kWord > config.max_binding_bytes; };
  std::vector<int64_t> stages;
  if (!aboveLimit() && length >= kShortest && config.parallel_units > 1) stages.push_back(columnsOf(length));
  while (aboveLimit()) {
    stages.push_back(columnsWithin(length, config.max_binding_bytes));
    length /= std::max<int64_t>(1, stages.back());
    if (stages.back() == 0) break;
  }
  std::erase(stages, 0);
  return stages;
}

/// The largest power of two of equal parts of `length` elements such that `groups` workgroups a part stay within `most`.
int64_t partsOf(int64_t length, int64_t shortest, int64_t groups, int64_t most) {
  int64_t parts = 1;
  while (parts < kMostParts && length % (2 * parts) == 0 && length / (2 * parts) >= shortest && groups * 2 * parts <= most) parts *= 2;
  return parts;
}

struct Splitter {
  const Graph& graph;
  const SplitReductionsConfig& config;
  Rewriter rewriter;
  const int64_t units = config.parallel_units;

  Builder& b() { return rewriter.builder(); }

  /// A reduction of everything: the rows are free to choose.
  bool splitWhole(const Node& node) {
    std::vector<int64_t> stages = stagesOf(graph.shapeOf(node.operands[0]).elementCount(), config);
    if (stages.empty()) return false;
    ValueId total = rewriter[node.operands[0]];
    for (int64_t columns : stages) {
      ValueId rows = b().reshape(total, Shape{b().shapeOf(total).elementCount() / columns, columns});
      total = b().make(*node.op->name, {rows}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    }
    total = b().make(*node.op->name, {total}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
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

  /// A reduction over leading and trailing axes to few results (the bias of a convolution): rows first, whose loads are contiguous.
  bool splitEnds(const Node& node, const ReduceLowering& reduce) {
    std::vector<int64_t> axes = reduce.axes(graph, node), leading = axes, trailing;
    auto rank = static_cast<int64_t>(graph.shapeOf(node.operands[0]).rank());
    while (!leading.empty() && leading.back() == rank - 1 - static_cast<int64_t>(trailing.size())) {
      trailing.insert(trailing.begin(), leading.back());
      leading.pop_back();
    }
    if (leading.empty() || trailing.empty() || units < kFewUnits) return false;
    const Shape& shape = graph.shapeOf(node.operands[0]);
    int64_t columns = 1;
    for (int64_t axis : trailing) columns *= shape.extent(static_cast<size_t>(axis));
    if (columns < kShortestPart || shape.elementCount() < 2 * kShortest) return false;
    ValueId rows = b().make(*node.op->name, {rewriter[node.operands[0]]}, {{"axes", trailing}, {"keep_dims", false}});
    ValueId total = b().make(*node.op->name, {rows}, {{"axes", leading}, {"keep_dims", false}});
    rewriter.set(node.results[0], b().reshape(total, graph.shapeOf(node.results[0])));
    return true;
  }

  /// A small contraction with a long inner axis (the gradient of a weight): one product a part, then their sum.
  bool splitInner(const Node& node, const ContractLowering& contract) {
    if (contract.partial == nullptr || units < kFewUnits) return false;
    ContractShape shape = contract.shape(graph, node);
    if (shape.k < kShortestInner) return false;
    int64_t tiles = shape.batch * ((shape.m + 15) / 16) * ((shape.n + 15) / 16);
    int64_t parts = partsOf(shape.k, kShortestPart, tiles, 4 * units);
    if (parts == 1) return false;
    ValueId products = contract.partial(b(), node, rewriter.mapped(node.operands), parts);
    if (!products.valid()) return false;
    rewriter.set(node.results[0], b().sum(products, 0, false));
    return true;
  }

  bool split(const Node& node) {
    b().setLocation(node.location);
    if (const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower))
      return graph.shapeOf(node.results[0]).elementCount() == 1 ? splitWhole(node)
                                                                : splitLeading(node, *reduce) || splitEnds(node, *reduce);
    const auto* contract = std::get_if<ContractLowering>(&*node.op->lower);
    return contract != nullptr && splitInner(node, *contract);
  }
};

}  // namespace

Result<Graph> splitReductions(const Graph& graph, const SplitReductionsConfig& config) {
  Splitter splitter{graph, config, Rewriter(graph)};
  for (NodeId id : graph.body().nodes) {
    if (!splitter.split(graph[id])) splitter.rewriter.copy(graph[id]);
  }
  Rewriter& rewriter = splitter.rewriter;
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
