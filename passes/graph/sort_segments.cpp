// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/sort_segments.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// The scatter that adds up slices by one index, where sorting that index is worth it.
bool isWorthSorting(const Graph& graph, const Node& node) {
  const auto* scatter = std::get_if<ScatterLowering>(&*node.op->lower);
  if (scatter == nullptr || node.operands.size() != 2 || graph.typeOf(node.results[0]).dtype != DType::F32) return false;
  const ScatterShape shape = scatter->shape(graph, node);
  return shape.length <= cost::kLongestSorted && shape.length * shape.segments >= cost::kLeastSorted;
}

}  // namespace

Result<Graph> sortSegments(const Graph& graph) {
  const auto isChosen = [&](NodeId id) { return isWorthSorting(graph, graph[id]); };
  if (std::ranges::none_of(graph.body().nodes, isChosen)) return graph;
  Rewriter rewriter(graph);
  Builder& b = rewriter.builder();
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (!isChosen(id)) {
      rewriter.copy(node);
      continue;
    }
    b.setLocation(node.location);
    const ValueId source = rewriter[node.operands[0]], index = rewriter[node.operands[1]];
    const std::vector<ValueId> sorted = b.makeAll("sort", {index}, {{"axis", int64_t{0}}, {"descending", false}});
    const int64_t segments = node.attributes.get<int64_t>("segments");
    const ValueId numbers = b.make("arange", {}, {{"n", segments + 1}, {"dtype", DType::I32}});
    const ValueId starts = b.make("search_sorted", {sorted[0], numbers});
    const ValueId sums = b.make("sum_of_runs", {source, sorted[1], starts}, {{"axis", node.attributes.get<int64_t>("axis")}});
    b.name(sums, graph[node.results[0]].name);
    rewriter.set(node.results[0], sums);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
