// SPDX-License-Identifier: Apache-2.0
// Which large values every reader computes again, because what they are made of is in memory anyway.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "passes/cost.h"
#include "passes/fuse/cluster_state.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// What it takes to compute a value again from values that are in memory anyway.
struct Repetition {
  std::set<NodeId> nodes;
  std::set<ValueId> small;      ///< read, at most half as large
  std::set<ValueId> large;      ///< read, of the same size and at the same position, or a part of rows that are not twice as wide
  std::set<ValueId> elsewhere;  ///< read at another position, as through a window
};

/// What may be computed again.
struct Allowed {
  bool stores_small = false;    ///< also from small values that the same cluster makes and would not store otherwise
  bool for_one_reader = false;  ///< also from two values for one reader that needs neither, and from such at another position
};

/// Adds what node `id` is computed from; false when that is more than a few operations, or more than is allowed.
bool collectRepetition(const ClusterState& state, NodeId id, NodeId root, const Allowed& allowed, Repetition& found) {
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
    const bool is_worth_storing = allowed.stores_small && cost::kStoredSmallerBy * source.elementCount() <= shape.elementCount();
    const bool elsewhere = is_worth_storing || state.clusterOf(read.base) != state.clusterOf(graph[root].results[0]);
    if (!read.exact) return false;
    if (!state.isStored(read.base, root) && !(small && elsewhere)) {
      return isLinearIdentity(read.map, shape, source) && collectRepetition(state, graph[read.base].node, root, allowed, found);
    }
    if (small) {
      found.small.insert(read.base);
      return true;
    }
    // Of wider rows no more is read than of a copy, but they are kept for longer.
    const bool is_part = source.elementCount() < cost::kSmallerBy * shape.elementCount() && isPartOfRows(read.map, shape, source);
    const bool is_in_place = is_part || isLinearIdentity(read.map, shape, source);
    if (!is_in_place && !allowed.for_one_reader) return false;
    (is_in_place ? found.large : found.elsewhere).insert(read.base);
    return found.large.size() + found.elsewhere.size() <= cost::kMostLargeOfRepeated;
  });
}

/// Whether the cluster of `user` reads a value anyway, or makes it.
bool isReadBeside(const ClusterState& state, ValueId user, ValueId value) {
  const int32_t c = state.clusterOf(user);
  if (c < 0) return false;
  return state.isMember(c, value) || std::ranges::any_of(state.cluster(c).members, [&](NodeId member) {
           const std::vector<Read>& reads = state.readsOf(state.graph[member]);
           return std::ranges::find(reads, value, &Read::base) != reads.end();
         });
}

/// Whether one reduction reads a result, or one map of about as many elements, which has it as a part: and to read what it is made of takes
/// no more bytes than to write the result and read it.
bool isForOneReader(const ClusterState& state, ValueId result, const Repetition& found) {
  const Graph& graph = state.graph;
  const std::vector<ValueId>& users = state.users[result.index()];
  if (users.size() != 1) return false;
  const TensorType& type = graph.typeOf(result);
  const Lowering& lowering = *graph.definition(users.front()).op->lower;
  const bool is_part = std::holds_alternative<ElementLowering>(lowering) &&
                       state.cluster(state.clusterOf(users.front())).kind == GroupKind::Map &&
                       graph.shapeOf(users.front()).elementCount() < cost::kSmallerBy * type.shape.elementCount();
  if (!is_part && !std::holds_alternative<ReduceLowering>(lowering)) return false;
  uint64_t read = 0;
  for (const ValueId large : found.large) read += graph.typeOf(large).byteSize();
  for (const ValueId other : found.elsewhere)
    read += static_cast<uint64_t>(type.shape.elementCount()) * graph.typeOf(other).byteSize() /
            static_cast<uint64_t>(graph.shapeOf(other).elementCount());
  return read <= 2 * type.byteSize();
}

/// Whether a product reads a packed result that is made of wider values: it would read more bytes, and compute, in each of its rounds.
bool isReadNarrow(const ClusterState& state, ValueId result, const Repetition& found) {
  const Graph& graph = state.graph;
  const auto bytes = [&](ValueId value) { return graph.typeOf(value).byteSize(); };
  const bool narrows =
      isPacked(graph.typeOf(result).dtype) && std::ranges::any_of(found.large, [&](ValueId large) { return bytes(large) > bytes(result); });
  return narrows && std::ranges::any_of(state.users[result.index()], [&](ValueId user) {
           return std::holds_alternative<ContractLowering>(*graph.definition(user).op->lower);
         });
}

}  // namespace

std::array<int64_t, 2> loadsPerElement(const ContractShape& shape, const FuseConfig& config) {
  const auto tiles = [](int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; };
  return {tiles(shape.n, config.product_columns) * config.product_lanes, tiles(shape.m, config.product_rows)};
}

size_t operationsOf(const ClusterState& state, ValueId value, const std::function<bool(NodeId)>& made) {
  std::set<NodeId> found;
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    const NodeId id = state.graph[next].node;
    const Node& node = state.graph[id];
    const bool is_element = std::holds_alternative<ElementLowering>(*node.op->lower);
    const bool is_made = is_element && (!state.computes(id) || made(id));
    if ((is_made && found.insert(id).second) || (!is_element && isView(state.graph, next) && leafName(node) == nullptr))
      open.insert(open.end(), node.operands.begin(), node.operands.end());
  }
  return found.size();
}

bool mayRepeatInLoads(const ClusterState& state, const Node& node, ValueId value, size_t operations) {
  const auto* contract = std::get_if<ContractLowering>(&*node.op->lower);
  if (contract == nullptr) return true;
  const ContractShape shape = contract->shape(state.graph, node);
  const int64_t elements = state.graph.shapeOf(value).elementCount();
  // A small product takes no longer for them than a dispatch that would store the value.
  const bool is_small = shape.batch * shape.m * shape.n * shape.k < cost::kLeastBusyProducts;
  const int64_t allowed = std::max(cost::kRepeatedInLoads * elements, is_small ? state.config.dispatch_operations : 0);
  const auto isCheap = [&](ValueId operand, int64_t loads) {
    const std::vector<Read> reads = state.readsFor(operand);
    return std::ranges::find(reads, value, &Read::base) == reads.end() || static_cast<int64_t>(operations) * (loads - elements) <= allowed;
  };
  const std::array<int64_t, 2> times = loadsPerElement(shape, state.config);
  return isCheap(node.operands[0], shape.batch * shape.m * shape.k * times[0]) &&
         isCheap(node.operands[1], shape.batch * shape.k * shape.n * times[1]);
}

namespace {

/// By value, how it is computed again.
using Repetitions = std::map<ValueId, Repetition>;

/// With what its large values are made of, where these are computed again, too.
bool substitute(const Repetitions& made, Repetition& found) {
  // What is computed again reads its own values at its own position.
  if (std::ranges::any_of(found.elsewhere, [&](ValueId value) { return made.contains(value); })) return false;
  for (const ValueId large : std::vector(found.large.begin(), found.large.end())) {
    const auto inner = made.find(large);
    if (inner == made.end()) continue;
    found.large.erase(large);
    found.nodes.insert(inner->second.nodes.begin(), inner->second.nodes.end());
    found.small.insert(inner->second.small.begin(), inner->second.small.end());
    found.large.insert(inner->second.large.begin(), inner->second.large.end());
    found.elsewhere.insert(inner->second.elsewhere.begin(), inner->second.elsewhere.end());
  }
  return found.nodes.size() <= cost::kRepeatedOfLarge && found.large.size() + found.elsewhere.size() <= cost::kMostLargeOfRepeated;
}

/// How a large result that other clusters read can be computed by them: see addRepeatable.
std::optional<Repetition> repetitionOf(const ClusterState& state, NodeId id, const Allowed& allowed, const Repetitions& made) {
  const Graph& graph = state.graph;
  const ValueId result = graph[id].results[0];
  if (graph.shapeOf(result).elementCount() < cost::kLittleMemory || state.escapes[result.index()] || !state.isStored(result, id))
    return std::nullopt;
  Repetition found;
  if (!collectRepetition(state, id, id, allowed, found) || found.large.empty()) return std::nullopt;
  if (!substitute(made, found)) return std::nullopt;
  if (isReadNarrow(state, result, found)) return std::nullopt;
  const size_t operations = operationsOf(state, result, [&](NodeId node) { return found.nodes.contains(node); });
  const auto isCheapFor = [&](ValueId user) { return mayRepeatInLoads(state, graph.definition(user), result, operations); };
  if (!std::ranges::all_of(state.users[result.index()], isCheapFor)) return std::nullopt;
  const bool is_for_one = allowed.for_one_reader && isForOneReader(state, result, found);
  const bool fits = std::ranges::all_of(state.users[result.index()], [&](ValueId user) {
    // Of several values of its size none may be read for it alone.
    const auto isBeside = [&](ValueId large) { return isReadBeside(state, user, large); };
    if (!found.elsewhere.empty() && !is_for_one) return false;
    if (found.large.size() > 1 && !is_for_one && !std::ranges::all_of(found.large, isBeside)) return false;
    return state.readsOf(graph[graph[user].node]).size() + found.small.size() + 2 <= state.config.max_bindings;
  });
  return fits ? std::optional(found) : std::nullopt;
}

}  // namespace

bool addRepeatable(const ClusterState& state, std::vector<bool>& cheap) {
  const Graph& graph = state.graph;
  Repetitions made;
  std::set<ValueId> larges;  // what is kept for something else
  const auto isKept = [&](ValueId value) { return !cheap[graph[value].node.index()]; };
  const auto add = [&](const Allowed& allowed) {
    for (NodeId id : graph.body().nodes) {
      if (!state.computes(id) || cheap[id.index()] || larges.contains(graph[id].results[0])) continue;
      std::optional<Repetition> found = repetitionOf(state, id, allowed, made);
      if (!found || !std::ranges::all_of(found->large, isKept) || !std::ranges::all_of(found->small, isKept) ||
          !std::ranges::all_of(found->elsewhere, isKept))
        continue;
      for (NodeId repeated : found->nodes) cheap[repeated.index()] = true;
      larges.insert(found->large.begin(), found->large.end());
      larges.insert(found->elsewhere.begin(), found->elsewhere.end());
      made.emplace(graph[id].results[0], *std::move(found));
    }
  };
  // First those that need nothing more in memory: a norm's x̂ is kept where that saves its result, else its mean and deviation.
  add({});
  add({.stores_small = true});
  add({.stores_small = true, .for_one_reader = true});
  return !made.empty();
}

}  // namespace lockstep::passes
