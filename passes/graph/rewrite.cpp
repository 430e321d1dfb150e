// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/rewrite.h"

#include <fmt/format.h>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

Rewriter::Rewriter(const Graph& in) : in_(in), map_(in.values.size()) {
  Graph& out = builder_.mutableGraph();
  out.parameters = in.parameters;
  out.symbols = in.symbols;
  out.constants = in.constants;
  out.locations = in.locations;
}

ValueId Rewriter::operator[](ValueId old) const {
  if (!map_[old.index()].valid()) internalError("a value is used before the pass has made it");
  return map_[old.index()];
}

std::vector<ValueId> Rewriter::mapped(const std::vector<ValueId>& old) const {
  std::vector<ValueId> now;
  for (ValueId value : old) now.push_back((*this)[value]);
  return now;
}

std::vector<ValueId> Rewriter::copy(const Node& node) {
  if (!node.regions.empty()) internalError("a region node cannot be copied before fuse");
  builder_.setLocation(node.location);
  std::vector<ValueId> results = builder_.makeAll(*node.op->name, mapped(node.operands), node.attributes);
  for (size_t i = 0; i < results.size(); ++i) {
    set(node.results[i], results[i]);
    builder_.name(results[i], in_[node.results[i]].name);
  }
  return results;
}

void Rewriter::copyOutput(const graph::Output& output) { builder_.output(output.kind, output.name, (*this)[output.value]); }

Graph removeDead(const Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (const graph::Output& output : graph.outputs) live[output.value.index()] = true;
  const std::vector<NodeId>& nodes = graph.body().nodes;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = graph[nodes[i]];
    bool needed = leafName(node) != nullptr;
    for (ValueId result : node.results) needed = needed || live[result.index()];
    if (!needed) continue;
    keep[nodes[i].index()] = true;
    for (ValueId operand : node.operands) live[operand.index()] = true;
  }
  Rewriter rewriter(graph);
  for (NodeId id : nodes) {
    if (keep[id.index()]) rewriter.copy(graph[id]);
  }
  for (const graph::Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

graph::Builder leavesFor(const graph::Graph& graph, const graph::Node& node, std::vector<graph::ValueId>& operands) {
  graph::Builder builder;
  for (const graph::ValueId operand : node.operands) {
    const graph::TensorType& type = graph.typeOf(operand);
    operands.push_back(builder.make(
        "input", {}, {{"name", fmt::format("operand{}", operands.size())}, {"shape", type.shape.extents()}, {"dtype", type.dtype}}));
  }
  return builder;
}

}  // namespace lockstep::passes
