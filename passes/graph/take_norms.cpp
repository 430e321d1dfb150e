// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/take_norms.h"

#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr size_t kOperands = 3;  // of a product without a norm

/// The norm that makes the rows of a product; null where none does.
const Node* normOf(const Graph& graph, const Node& node) {
  static const OpDef* const product = &op("quantized_matmul");
  static const OpDef* const norm = &op("rms_norm");
  if (node.op != product || node.operands.size() != kOperands) return nullptr;
  const ValueId rows = throughShapes(graph, node.operands[0]);
  const Shape &made = graph.shapeOf(rows), &read = graph.shapeOf(node.operands[0]);
  const bool are_rows = made.rank() > 0 && made.extent(made.rank() - 1) == read.extent(read.rank() - 1);
  const Node& maker = graph.definition(rows);
  return are_rows && maker.op == norm ? &maker : nullptr;
}

}  // namespace

Graph takeNorms(const Graph& graph) {
  Rewriter rewriter(graph);
  Builder& b = rewriter.builder();
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const Node* norm = normOf(graph, node);
    if (norm == nullptr) {
      rewriter.copy(node);
      continue;
    }
    b.setLocation(node.location);
    std::vector<ValueId> operands = rewriter.mapped(node.operands);
    operands[0] = b.reshape(rewriter[norm->operands[0]], graph.shapeOf(node.operands[0]));
    operands.push_back(rewriter[norm->operands[1]]);
    Attributes attributes = node.attributes;
    attributes.set("eps", norm->attributes.get<double>("eps"));
    const ValueId made = b.make(*node.op->name, operands, attributes);
    b.name(made, graph[node.results[0]].name);
    rewriter.set(node.results[0], made);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return removeDead(rewriter.take());
}

}  // namespace lockstep::passes
