// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/share_rounded.h"

#include <algorithm>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool isCast(const Graph& graph, const Node& node, DType from, DType to) {
  static const OpDef* const cast = &op("cast");
  return node.op == cast && graph.typeOf(node.operands[0]).dtype == from && graph.typeOf(node.results[0]).dtype == to;
}

/// By value of f32: whether `low` has each of its elements.
std::vector<bool> findExact(const Graph& graph, DType low) {
  std::vector<bool> exact(graph.values.size(), false);
  const auto has = [&](double number) { return roundedTo(low, number) == number; };
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (node.results.size() != 1 || graph.typeOf(node.results[0]).dtype != DType::F32) continue;
    const auto fromExact = [&] {
      return std::ranges::all_of(node.operands,
                                 [&](ValueId operand) { return graph.typeOf(operand).dtype != DType::F32 || exact[operand.index()]; });
    };
    bool found = false;
    if (leafKind(node) == LeafKind::Constant) {
      found = has(node.attributes.get<double>("value"));
    } else if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
      const IndexMap map = view->map(graph, node);
      found = exact[node.operands[0].index()] && (map.guards.empty() || has(map.fill));
    } else if (std::holds_alternative<ElementLowering>(*node.op->lower)) {
      found = isCast(graph, node, low, DType::F32) || (node.op->algebra.chooses && fromExact());
    }
    exact[node.results[0].index()] = found;
  }
  return exact;
}

Graph shareIn(const Graph& graph, DType low) {
  const std::vector<bool> exact = findExact(graph, low);
  std::vector<bool> rounded(graph.values.size(), false), read(graph.values.size(), false);  // by some reader; by another one as it is
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    for (const ValueId operand : node.operands) (isCast(graph, node, DType::F32, low) ? rounded : read)[operand.index()] = true;
  }
  for (const Output& output : graph.outputs) read[output.value.index()] = true;

  Rewriter rewriter(graph);
  std::vector<ValueId> packed(graph.values.size());  // by value: what its readers share, in the new graph
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (isCast(graph, node, DType::F32, low) && packed[node.operands[0].index()].valid()) {
      rewriter.set(node.results[0], packed[node.operands[0].index()]);
      continue;
    }
    rewriter.copy(node);
    if (node.results.size() != 1) continue;
    const ValueId value = node.results[0];
    const bool is_shared = exact[value.index()] && rounded[value.index()] && read[value.index()];
    if (!is_shared || isCast(graph, node, low, DType::F32)) continue;
    Builder& b = rewriter.builder();
    b.setLocation(node.location);
    packed[value.index()] = b.make("cast", {rewriter[value]}, {{"dtype", low}});
    rewriter.set(value, b.make("cast", {packed[value.index()]}, {{"dtype", DType::F32}}));
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace

Graph shareRounded(const Graph& graph) {
  Graph out = graph;
  for (const DType low : kDTypes) {
    const bool is_rounded_to = std::ranges::any_of(out.body().nodes, [&](NodeId id) { return isCast(out, out[id], DType::F32, low); });
    if (isPacked(low) && isFloat(low) && is_rounded_to) out = shareIn(out, low);
  }
  return out;
}

}  // namespace lockstep::passes
