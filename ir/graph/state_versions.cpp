// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/state_versions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

std::vector<ValueId> versionsInPlace(const Graph& graph, ValueId leaf, ValueId next) {
  std::vector<ValueId> versions{next};
  while (versions.back() != leaf) {
    const Node& node = graph.definition(versions.back());
    const auto* lowering = std::get_if<DecomposeLowering>(&*node.op->lower);
    const bool is_update = std::holds_alternative<AliasUpdate>(*node.op->alias);
    if (!is_update && (lowering == nullptr || lowering->in_place.empty())) return {};
    versions.push_back(node.operands[0]);
  }
  std::ranges::reverse(versions);
  return versions;
}

bool readsTogether(const Graph& graph, const std::vector<ValueId>& versions) {
  std::vector<std::optional<std::pair<size_t, size_t>>> made_of(graph.values.size());  // the oldest and the newest version
  for (size_t i = 0; i < versions.size(); ++i) made_of[versions[i].index()] = {i, i};
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (node.results.empty() || std::ranges::find(versions, node.results[0]) != versions.end()) continue;
    std::optional<std::pair<size_t, size_t>> read;
    for (const ValueId operand : node.operands) {
      const auto& one = made_of[operand.index()];
      if (!one) continue;
      read = read ? std::pair(std::min(read->first, one->first), std::max(read->second, one->second)) : *one;
    }
    if (read && read->first != read->second) return true;
    for (const ValueId result : node.results) made_of[result.index()] = read;
  }
  return false;
}

}  // namespace lockstep::graph
