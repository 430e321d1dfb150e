// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/recognise.h"

#include <vector>

#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// By value, how many nodes and outputs read it.
std::vector<uint32_t> countReaders(const Graph& graph) {
  std::vector<uint32_t> readers(graph.values.size(), 0);
  for (const NodeId id : graph.body().nodes) {
    for (const ValueId operand : graph[id].operands) ++readers[operand.index()];
  }
  for (const Output& output : graph.outputs) ++readers[output.value.index()];
  return readers;
}

std::vector<const Recognition*> recognitions() {
  std::vector<const Recognition*> all;
  for (const OpDef* op : allOps()) {
    if (op->recognition != nullptr) all.push_back(op->recognition);
  }
  return all;
}

}  // namespace

Graph recognise(const Graph& graph) {
  const std::vector<uint32_t> readers = countReaders(graph);
  const std::vector<const Recognition*> all = recognitions();
  Rewriter rewriter(graph);
  bool any = false;
  const auto replace = [&](const Node& node) {
    for (const Recognition* recognition : all) {
      std::optional<Spelled> found = recognition->find(graph, node, readers);
      if (!found) continue;
      found->operands = rewriter.mapped(found->operands);
      rewriter.builder().setLocation(node.location);
      const ValueId result = recognition->build(rewriter.builder(), *found, graph.shapeOf(node.results[0]));
      rewriter.builder().name(result, graph[node.results[0]].name);
      rewriter.set(node.results[0], result);
      any = true;
      return true;
    }
    return false;
  };
  for (const NodeId id : graph.body().nodes) {
    if (!replace(graph[id])) rewriter.copy(graph[id]);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return any ? removeDead(rewriter.take()) : rewriter.take();
}

}  // namespace lockstep::passes
