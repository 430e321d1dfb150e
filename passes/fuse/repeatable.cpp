// SPDX-License-Identifier: Apache-2.0
// Which large values every reader computes again, because what they are made of is in memory anyway.
#include <algorithm>

#include "passes/cost.h"
#include "passes/fuse/cluster_state.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// What it takes to compute a value again from values that are in memory anyway.
struct Repetition {
  std::set<NodeId> nodes;
  std::set<ValueId> small;       ///< read, at most half as large
  std::optional<ValueId> large;  ///< read, of the same size and at the same position
};

/// Adds what node `id` is computed from; false when that is more than a few operations, or reads more than one value of its size.
bool collectRepetition(const ClusterState& state, NodeId id, NodeId root, Repetition& found) {
  const Graph& graph = state.graph;
  const Node& node = graph[id];
  const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
  if (element == nullptr || element->transcendental || element->scalar_only) return false;
  found.nodes.insert(id);
  if (found.nodes.size() > cost::kRepeatedOfLarge) return false;
  const Shape& shape = graph.shapeOf(node.results[0]);
  return std::ranges::all_of(state.readsOf(node), [&](const Read& read) {
    const Shape& source = graph.shapeOf(read.base);
    const bool small = cost::kSmallerBy * source.elementCount() <= shape.elementCount();
    // A small value that its cluster would not store otherwise costs one more result.
    if (!read.exact) return false;
    if (!state.isStored(read.base, root) && !small) {
      return isLinearIdentity(read.map, shape, source) && collectRepetition(state, graph[read.base].node, root, found);
    }
    if (small) {
      found.small.insert(read.base);
      return true;
    }
    if (!isLinearIdentity(read.map, shape, source) || found.large.value_or(read.base) != read.base) return false;
    found.large = read.base;
    return true;
  });
}

/// How a large result that other clusters read can be computed by them: see addRepeatable.
std::optional<Repetition> repetitionOf(const ClusterState& state, NodeId id) {
  const Graph& graph = state.graph;
  const ValueId result = graph[id].results[0];
  if (graph.shapeOf(result).elementCount() < cost::kLittleMemory || state.escapes[result.index()] || !state.isStored(result, id))
    return std::nullopt;
  Repetition found;
  if (!collectRepetition(state, id, id, found) || !found.large) return std::nullopt;
  const bool fits = std::ranges::all_of(state.users[result.index()], [&](ValueId user) {
    return state.readsOf(graph[graph[user].node]).size() + found.small.size() + 2 <= state.config.max_bindings;
  });
  return fits ? std::optional(found) : std::nullopt;
}

}  // namespace

bool addRepeatable(const ClusterState& state, std::vector<bool>& cheap) {
  const Graph& graph = state.graph;
  bool any = false;
  auto isKept = [&](ValueId value) { return !cheap[graph[value].node.index()]; };
  for (NodeId id : graph.body().nodes) {
    if (!state.computes(id) || cheap[id.index()]) continue;
    const std::optional<Repetition> found = repetitionOf(state, id);
    if (!found || !isKept(*found->large) || !std::ranges::all_of(found->small, isKept)) continue;
    for (NodeId repeated : found->nodes) cheap[repeated.index()] = true;
    any = true;
  }
  return any;
}

}  // namespace lockstep::passes
