// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/coarse_functions.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool hasCoarseForm(const Node& node) {
  const auto& attributes = *node.op->attributes;
  return std::ranges::find(attributes, kCoarseAttribute, &AttributeDef::name) != attributes.end();
}

/// By value, whether all that reads it rounds it to 16 bits: a cast, or a product that is read so.
std::vector<bool> findRounded(const Graph& graph, const Region& region) {
  static const OpDef *const cast = &op("cast"), *const product = &op("mul");
  std::vector<bool> rounded(graph.values.size(), true);
  const auto keep = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) rounded[value.index()] = false;
  };
  keep(region.yields);
  for (const Output& output : graph.outputs) keep({output.value});
  for (const NodeId id : std::views::reverse(region.nodes)) {
    const Node& node = graph[id];
    const bool passes_on = std::holds_alternative<ViewLowering>(*node.op->lower) || node.op == product;
    const DType dtype = graph.typeOf(node.results[0]).dtype;
    const bool rounds = node.op == cast && isPacked(dtype) && isFloat(dtype);
    if (!rounds && !(passes_on && rounded[node.results[0].index()])) keep(node.operands);
  }
  return rounded;
}

}  // namespace

Graph coarseFunctions(const Graph& graph) {
  Graph out = graph;
  const std::vector<bool> rounded = findRounded(graph, graph.body());
  std::vector<bool> is_read(graph.values.size(), false);
  for (const NodeId id : graph.body().nodes) {
    for (const ValueId operand : graph[id].operands) is_read[operand.index()] = true;
  }
  for (const NodeId id : graph.body().nodes) {
    const ValueId result = graph[id].results.empty() ? ValueId() : graph[id].results[0];
    if (result.valid() && hasCoarseForm(graph[id]) && is_read[result.index()] && rounded[result.index()])
      out.nodes[id.index()].attributes.set(std::string(kCoarseAttribute), true);
  }
  return out;
}

}  // namespace lockstep::passes
