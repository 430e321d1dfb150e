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

/// The divisor of `length` nearest above its square root, 0 when there is none to speak of.
int64_t firstStage(int64_t length) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  for (int64_t columns = root; columns < length / 16; ++columns) {
    if (length % columns == 0) return columns;
  }
  return 0;
}

}  // namespace

Result<Graph> splitReductions(const Graph& graph, const SplitReductionsConfig& config) {
  Rewriter rewriter(graph);
  Builder& b = rewriter.builder();
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower);
    int64_t results = graph.shapeOf(node.results[0]).elementCount();
    int64_t length = reduce == nullptr ? 0 : graph.shapeOf(node.operands[0]).elementCount() / results;
    // Only reductions of whole tensors: others have rows enough, and only for these the rows are free to choose.
    if (results != 1 || length < kShortest || config.parallel_units < 2) {
      rewriter.copy(node);
      continue;
    }
    int64_t columns = firstStage(length);
    if (columns == 0) {
      rewriter.copy(node);
      continue;
    }
    b.setLocation(node.location);
    ValueId rows = b.reshape(rewriter[node.operands[0]], Shape{length / columns, columns});
    ValueId partial = b.make(*node.op->name, {rows}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    ValueId total = b.make(*node.op->name, {partial}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
    rewriter.set(node.results[0], b.reshape(total, graph.shapeOf(node.results[0])));
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
