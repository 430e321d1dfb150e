// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/decompose.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/whole_word_updates.h"

namespace lockstep::passes {

using namespace graph;

Graph decomposeIf(const Graph& graph, bool (*chosen)(const Node&)) {
  Rewriter rewriter(graph);
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const auto* lowering = std::get_if<DecomposeLowering>(&*node.op->lower);
    if (lowering == nullptr || !chosen(node)) {
      rewriter.copy(node);
      continue;
    }
    rewriter.builder().setLocation(node.location);
    const std::vector<ValueId> operands = rewriter.mapped(node.operands);
    const std::vector<ValueId> results = lowering->decompose(rewriter.builder(), node, operands);
    for (size_t i = 0; i < results.size(); ++i) rewriter.set(node.results[i], results[i]);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

Result<Graph> decompose(const Graph& graph) {
  const auto isComposed = [](const Node& node) { return std::holds_alternative<DecomposeLowering>(*node.op->lower); };
  const auto holdsComposed = [&](const Graph& one) {
    return std::ranges::any_of(one.body().nodes, [&](NodeId id) { return isComposed(one[id]); });
  };
  // A decomposition may use ops that decompose themselves (cross_entropy -> log_softmax), so repeat until nothing is left.
  Graph current = graph;
  while (holdsComposed(current)) current = decomposeIf(current, isComposed);
  return updateWholeWords(current);
}

}  // namespace lockstep::passes
