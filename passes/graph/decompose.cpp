// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/decompose.h"

#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/whole_word_updates.h"

namespace lockstep::passes {

using namespace graph;

Result<Graph> decompose(const Graph& graph) {
  Graph current = graph;
  // A decomposition may use ops that decompose themselves (cross_entropy -> log_softmax), so repeat until nothing is left.
  for (bool changed = true; changed;) {
    changed = false;
    Rewriter rewriter(current);
    for (NodeId id : current.body().nodes) {
      const Node& node = current[id];
      const auto* lowering = std::get_if<DecomposeLowering>(&*node.op->lower);
      if (lowering == nullptr) {
        rewriter.copy(node);
        continue;
      }
      changed = true;
      rewriter.builder().setLocation(node.location);
      std::vector<ValueId> operands = rewriter.mapped(node.operands);
      std::vector<ValueId> results = lowering->decompose(rewriter.builder(), node, operands);
      for (size_t i = 0; i < results.size(); ++i) rewriter.set(node.results[i], results[i]);
    }
    for (const Output& output : current.outputs) rewriter.copyOutput(output);
    current = rewriter.take();
  }
  return updateWholeWords(current);
}

}  // namespace lockstep::passes
