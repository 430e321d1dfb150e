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

}  // namespace

Result<Graph> splitReductions(const Graph& graph, const SplitReductionsConfig& config) {
  Rewriter rewriter(graph);
  Builder& b = rewriter.builder();
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    // Only reductions of whole tensors: others have rows enough, and only for these the rows are free to choose.
    bool whole = std::holds_alternative<ReduceLowering>(*node.op->lower) && graph.shapeOf(node.results[0]).elementCount() == 1;
    std::vector<int64_t> stages;
    if (whole) stages = stagesOf(graph.shapeOf(node.operands[0]).elementCount(), config);
    if (stages.empty()) {
      rewriter.copy(node);
      continue;
    }
    b.setLocation(node.location);
    ValueId total = rewriter[node.operands[0]];
    for (int64_t columns : stages) {
      ValueId rows = b.reshape(total, Shape{b.shapeOf(total).elementCount() / columns, columns});
      total = b.make(*node.op->name, {rows}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    }
    total = b.make(*node.op->name, {total}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
    rewriter.set(node.results[0], b.reshape(total, graph.shapeOf(node.results[0])));
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
