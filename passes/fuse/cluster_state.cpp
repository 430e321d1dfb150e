// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/cluster_state.h"

#include <algorithm>
#include <map>

#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

ClusterState::ClusterState(const Graph& g, const std::vector<bool>& storage, std::vector<bool> cheap, const FuseConfig& c)
    : graph(g),
      config(c),
      users(g.values.size()),
      escapes(g.values.size(), false),
      row_aligned(g.nodes.size(), 0),
      storage_(storage),
      cheap_(std::move(cheap)),
      reads_of_(g.nodes.size()),
      made_of_(g.nodes.size()) {
  out.of_node.assign(g.nodes.size(), -1);
  findAliasSources();
  findUsers();
}

bool ClusterState::computes(NodeId id) const {
  const Node& node = graph[id];
  return !storage_[id.index()] && !std::holds_alternative<ViewLowering>(*node.op->lower) && !cheap_[id.index()];
}

/// Every base value that operand `value`, seen through `map` from a space of `shape`, reads.
void ClusterState::collect(ValueId value, const IndexMap& map, bool exact, std::vector<Read>& reads) const {
  NodeId id = graph[value].node;
  const Node& node = graph[id];
  if (storage_[id.index()] || computes(id)) {
    reads.push_back({value, map, exact});
    return;
  }
  if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
    IndexMap inner = view->map(graph, node);
    // Guards of two pads with different fills do not compose; the position then counts as unknown.
    bool clash = !map.guards.empty() && !inner.guards.empty() && map.fill != inner.fill;
    bool known = exact && !clash;
    collect(node.operands[0], known ? compose(map, inner, graph.shapeOf(value)) : IndexMap{}, known, reads);
    return;
  }
  const auto& element = std::get<ElementLowering>(*node.op->lower);  // cheap
  for (ValueId operand : node.operands) collect(operand, element.scalar_only ? IndexMap{} : map, exact && !element.scalar_only, reads);
}

const std::vector<Read>& ClusterState::readsOf(const Node& node) const {
  std::optional<std::vector<Read>>& known = reads_of_[graph[node.results[0]].node.index()];
  if (!known) known = findReads(node);
  return *known;
}

std::vector<Read> ClusterState::findReads(const Node& node) const {
  std::vector<Read> reads;
  const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
  for (ValueId operand : node.operands) {
    bool exact = element == nullptr || !element->scalar_only || graph.shapeOf(operand) == graph.shapeOf(node.results[0]);
    if (element != nullptr && element->scalar_only) exact = false;
    collect(operand, exact ? identityMap(graph.shapeOf(operand).rank()) : IndexMap{}, exact, reads);
  }
  return reads;
}

/// Storage nodes (pack, update_slice, slices of them) pass dependencies on.
const std::vector<NodeId>& ClusterState::madeOf(NodeId storage_node) const {
  std::optional<std::vector<NodeId>>& known = made_of_[storage_node.index()];
  if (known) return *known;
  std::set<NodeId> found;
  for (ValueId operand : graph[storage_node].operands) {
    std::vector<Read> reads;
    collect(operand, identityMap(graph.shapeOf(operand).rank()), true, reads);
    for (const Read& read : reads) {
      const NodeId maker = graph[read.base].node;
      if (!storage_[maker.index()]) {
        found.insert(maker);
      } else {
        const std::vector<NodeId>& inner = madeOf(maker);
        found.insert(inner.begin(), inner.end());
      }
    }
  }
  known.emplace(found.begin(), found.end());
  return *known;
}

std::map<int32_t, bool> ClusterState::sourcesOf(NodeId id) const {
  std::map<int32_t, bool> sources;
  const auto note = [&](NodeId maker, bool stored) {
    const int32_t c = out.of_node[maker.index()];
    if (c < 0) return;
    bool& through = sources[c];
    through = through || stored;
  };
  for (const Read& read : readsOf(graph[id])) {
    const NodeId maker = graph[read.base].node;
    if (!storage_[maker.index()]) {
      note(maker, false);
    } else {
      for (NodeId inner : madeOf(maker)) note(inner, true);
    }
  }
  return sources;
}

bool ClusterState::staysAcyclic(NodeId id, int32_t c) const {
  const std::map<int32_t, bool> sources = sourcesOf(id);
  return std::ranges::none_of(sources,
                              [&](const auto& source) { return source.first == c ? source.second : links.needs(source.first, c); });
}

bool ClusterState::isStored(ValueId value, NodeId except) const {
  const int32_t c = clusterOf(value);
  return c < 0 || escapes[value.index()] ||
         std::ranges::any_of(users[value.index()], [&](ValueId user) { return graph[user].node != except && clusterOf(user) != c; });
}

uint32_t ClusterState::bindings(const std::vector<NodeId>& members) const {
  std::set<NodeId> inside(members.begin(), members.end());
  std::set<ValueId> loads, stores;
  for (NodeId id : members) {
    for (const Read& read : readsOf(graph[id])) {
      if (!inside.contains(graph[read.base].node)) loads.insert(read.base);
    }
    for (ValueId result : graph[id].results) {
      bool outside = escapes[result.index()];
      for (ValueId user : users[result.index()]) outside = outside || !inside.contains(graph[user].node);
      if (outside) stores.insert(result);
    }
  }
  // A result that becomes the next version of a state shares the state's binding.
  uint32_t in_place = 0;
  for (ValueId source : alias_sources_) in_place += stores.contains(source) ? 1 : 0;
  return static_cast<uint32_t>(loads.size() + stores.size()) - in_place;
}

bool ClusterState::fits(int32_t c, NodeId extra) const {
  std::vector<NodeId> members = out.clusters[static_cast<size_t>(c)].members;
  members.push_back(extra);
  return bindings(members) <= config.max_bindings;
}

void ClusterState::addTo(int32_t c, NodeId id) {
  for (const auto& [source, stored] : sourcesOf(id)) links.connect(c, source, stored);
  out.clusters[static_cast<size_t>(c)].members.push_back(id);
  out.of_node[id.index()] = c;
}

int32_t ClusterState::newCluster(GroupKind kind, NodeId id, int64_t elements, int64_t columns) {
  out.clusters.push_back({kind, {}, elements, columns});
  const int32_t c = links.add();
  addTo(c, id);
  return c;
}

bool ClusterState::fitsWith(const std::vector<int32_t>& sources, int32_t target) const {
  std::vector<NodeId> members = cluster(target).members;
  for (int32_t source : sources) members.insert(members.end(), cluster(source).members.begin(), cluster(source).members.end());
  return bindings(members) <= config.max_bindings;
}

void ClusterState::moveInto(const std::vector<int32_t>& sources, int32_t target) {
  std::vector<NodeId> members;
  for (int32_t source : sources) members.insert(members.end(), cluster(source).members.begin(), cluster(source).members.end());
  const std::vector<NodeId> moved = members;
  members.insert(members.end(), cluster(target).members.begin(), cluster(target).members.end());
  for (NodeId id : moved) out.of_node[id.index()] = target;
  cluster(target).members = std::move(members);
  // The nearest first, so that those between two of them are one with the target when the farther one comes.
  std::vector<int32_t> nearest = sources;
  std::ranges::sort(nearest, [&](int32_t a, int32_t b) { return links.precedes(b, a); });
  for (int32_t source : nearest) {
    links.merge(source, target);
    cluster(source).members.clear();
    cluster(source).dead = true;
  }
}

void ClusterState::findAliasSources() {
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (!std::holds_alternative<AliasUpdate>(*node.op->alias)) continue;
    std::vector<Read> source;
    collect(node.operands[1], identityMap(graph.shapeOf(node.operands[1]).rank()), true, source);
    for (const Read& read : source) alias_sources_.push_back(read.base);
  }
}

void ClusterState::findUsers() {
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (computes(id)) {
      for (const Read& read : readsOf(node)) users[read.base.index()].push_back(node.results[0]);
    } else if (storage_[id.index()]) {
      for (ValueId operand : node.operands) escape(operand);
    }
  }
  for (const Output& output : graph.outputs) escape(output.value);
}

void ClusterState::escape(ValueId value) {
  std::vector<Read> reads;
  collect(value, identityMap(graph.shapeOf(value).rank()), true, reads);
  for (const Read& read : reads) escapes[read.base.index()] = true;
}

}  // namespace lockstep::passes
