// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/use_rsqrt.h"

#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

Result<Graph> useRsqrt(const Graph& graph) {
  Rewriter rewriter(graph);
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const bool inverts = *node.op->name == "reciprocal" && *graph.definition(node.operands[0]).op->name == "sqrt";
    if (!inverts) {
      rewriter.copy(node);
      continue;
    }
    rewriter.builder().setLocation(node.location);
    const ValueId x = rewriter[graph.definition(node.operands[0]).operands[0]];
    rewriter.set(node.results[0], rewriter.builder().make("rsqrt", {x}));
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return removeDead(rewriter.take());
}

}  // namespace lockstep::passes
