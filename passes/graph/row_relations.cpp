// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/row_relations.h"

#include <algorithm>

#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// The elements of a row where a node reduces rows; 0: it does not.
int64_t rowLength(const Graph& graph, const Node& node) {
  return reducesRows(graph, node) ? graph.shapeOf(node.operands[0]).elementCount() / graph.shapeOf(node.results[0]).elementCount() : 0;
}

bool passesElements(const Node& node) {
  return std::holds_alternative<ElementLowering>(*node.op->lower) || std::holds_alternative<ViewLowering>(*node.op->lower);
}

}  // namespace

RowRelations::RowRelations(const Graph& graph) : graph_(graph), reduced_(graph.values.size(), 0), made_of_(graph.values.size(), 0) {
  const std::vector<NodeId>& nodes = graph.body().nodes;
  for (const NodeId id : nodes) {
    const Node& node = graph[id];
    if (node.results.empty()) continue;
    int64_t& columns = made_of_[node.results[0].index()];
    columns = rowLength(graph, node);
    if (!passesElements(node)) continue;
    for (const ValueId operand : node.operands) columns = std::max(columns, made_of_[operand.index()]);
  }
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = graph[nodes[i]];
    if (node.results.empty()) continue;
    const int64_t columns = passesElements(node) ? reduced_[node.results[0].index()] : rowLength(graph, node);
    for (const ValueId operand : node.operands) {
      if (columns > 0 && graph.shapeOf(operand).elementCount() >= graph.shapeOf(node.results[0]).elementCount())
        reduced_[operand.index()] = columns;
    }
  }
}

bool RowRelations::beside(ValueId value, int64_t columns) const {
  if (reduced_[value.index()] == columns || made_of_[value.index()] == columns) return true;
  const Node& node = graph_.definition(value);
  return passesElements(node) && std::ranges::any_of(node.operands, [&](ValueId operand) { return reduced_[operand.index()] == columns; });
}

}  // namespace lockstep::passes
