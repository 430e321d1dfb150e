// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/cluster_state.h"

#include <algorithm>
#include <utility>

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
      made_of_(g.nodes.size()),
      next_versions_(g.values.size(), 0),
      reads_elsewhere_(g.values.size(), 0),
      label_of_(g.nodes.size(), -1) {
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

std::vector<Read> ClusterState::readsFor(ValueId operand) const {
  std::vector<Read> reads;
  collect(operand, identityMap(graph.shapeOf(operand).rank()), true, reads);
  return reads;
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
  // Of a slice of a pack the parts in it: there may be many of both.
  const std::optional<std::vector<ValueId>> parts = packedParts(graph, graph[storage_node].results[0]);
  for (ValueId operand : parts ? *parts : graph[storage_node].operands) {
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
    const int32_t c = clusterOf(maker);
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
  if (c < 0 || escapes[value.index()]) return true;
  uint32_t elsewhere = reads_elsewhere_[value.index()];
  if (clusterOf(except) != c) elsewhere -= static_cast<uint32_t>(std::ranges::count(readsOf(graph[except]), value, &Read::base));
  return elsewhere > 0;
}

Footprint ClusterState::footprintOf(NodeId id) const {
  Footprint footprint;
  for (const Read& read : readsOf(graph[id])) ++footprint.loads[read.base];
  for (ValueId result : graph[id].results) {
    if (isRead(result)) footprint.stores.insert(result);
  }
  return footprint;
}

uint32_t ClusterState::bindings(const std::vector<const Footprint*>& parts, bool of_rows) const {
  // What one part makes and another one reads is bound only when somebody else reads it as well.
  std::map<ValueId, uint32_t> loads;
  for (const Footprint* part : parts) {
    for (const auto& [value, count] : part->loads) loads[value] += count;
  }
  uint32_t count = 0;
  for (const Footprint* part : parts) {
    for (ValueId result : part->stores) {
      const auto read = loads.find(result);
      const uint32_t inside = read == loads.end() ? 0 : read->second;
      const bool stored = escapes[result.index()] || reads_elsewhere_[result.index()] > inside;
      // A result that becomes the next version of a state shares the state's binding. A kernel over rows may still read the state while
      // it stores, so its result may be made beside it.
      if (stored) count += of_rows ? 1 : 1 - next_versions_[result.index()];
      if (read != loads.end()) loads.erase(read);
    }
    visits_ += part->loads.size() + part->stores.size();
  }
  return count + static_cast<uint32_t>(loads.size());
}

bool ClusterState::mayJoin(int32_t c) const {
  const auto early = [&](NodeId id) { return id.index() < config.joining; };
  return config.joining >= graph.nodes.size() || std::ranges::all_of(cluster(c).members, early);
}

bool ClusterState::fits(int32_t c, NodeId extra) const { return fitsWith({}, c, extra); }

bool ClusterState::fitsWith(const std::vector<int32_t>& sources, int32_t target, NodeId extra) const {
  if (extra.index() >= config.joining) return false;
  const Footprint more = footprintOf(extra);
  return fitsWith(sources, target, &more, std::holds_alternative<ReduceLowering>(*graph[extra].op->lower));
}

bool ClusterState::fitsWith(const std::vector<int32_t>& sources, int32_t target) const { return fitsWith(sources, target, nullptr, false); }

bool ClusterState::fitsWith(const std::vector<int32_t>& sources, int32_t target, const Footprint* more, bool reduces) const {
  if (!mayJoin(target) || !std::ranges::all_of(sources, [&](int32_t source) { return mayJoin(source); })) return false;
  std::vector<const Footprint*> parts{&footprintOf(target)};
  for (int32_t source : sources) parts.push_back(&footprintOf(source));
  if (more != nullptr) parts.push_back(more);
  const bool of_rows = reduces || isOfRows(target) || std::ranges::any_of(sources, [&](int32_t source) { return isOfRows(source); });
  return bindings(parts, of_rows) <= config.max_bindings;
}

void ClusterState::absorb(int32_t c, const Footprint& added) {
  Footprint& whole = footprints_[static_cast<size_t>(c)];
  for (const auto& [value, count] : added.loads) whole.loads[value] += count;
  whole.stores.insert(added.stores.begin(), added.stores.end());
  // What is read where it is made is no load any more, and no store unless somebody else reads it, too.
  const auto becomesInner = [&](ValueId value) {
    const auto load = whole.loads.find(value);
    if (load == whole.loads.end() || clusterOf(value) != c) return;
    reads_elsewhere_[value.index()] -= load->second;
    whole.loads.erase(load);
    if (!isRead(value)) whole.stores.erase(value);
  };
  for (const auto& [value, count] : added.loads) becomesInner(value);
  for (ValueId value : std::vector(added.stores.begin(), added.stores.end())) becomesInner(value);
}

int32_t ClusterState::newCluster(GroupKind kind, NodeId id, int64_t elements, int64_t columns) {
  out.clusters.push_back({kind, {}, elements, columns});
  footprints_.emplace_back();
  const int32_t c = links.add();
  label_of_cluster_.push_back(static_cast<int32_t>(cluster_of_label_.size()));
  cluster_of_label_.push_back(c);
  addTo(c, id);
  return c;
}

void ClusterState::addTo(int32_t c, NodeId id) {
  for (const auto& [source, stored] : sourcesOf(id)) links.connect(c, source, stored);
  const Footprint added = footprintOf(id);
  cluster(c).members.push_back(id);
  label_of_[id.index()] = label_of_cluster_[static_cast<size_t>(c)];
  absorb(c, added);
}

void ClusterState::moveInto(const std::vector<int32_t>& sources, int32_t target) {
  // The nearest first, so that those between two of them are one with the target when the farther one comes.
  std::vector<int32_t> nearest = sources;
  std::ranges::sort(nearest, [&](int32_t a, int32_t b) { return links.precedes(b, a); });
  for (int32_t source : nearest) {
    links.merge(source, target);
    Cluster &from = cluster(source), &to = cluster(target);
    int32_t &smaller = label_of_cluster_[static_cast<size_t>(source)], &larger = label_of_cluster_[static_cast<size_t>(target)];
    if (from.members.size() > to.members.size()) {
      std::swap(from.members, to.members);
      std::swap(smaller, larger);
    }
    cluster_of_label_[static_cast<size_t>(larger)] = target;
    for (NodeId id : from.members) label_of_[id.index()] = larger;
    to.members.insert(to.members.end(), from.members.begin(), from.members.end());
    from.members.clear();
    from.dead = true;
    absorb(target, std::exchange(footprints_[static_cast<size_t>(source)], {}));
  }
}

Clusters ClusterState::finished() const {
  Clusters clusters = out;
  for (Cluster& cluster : clusters.clusters) std::ranges::sort(cluster.members);
  for (size_t node = 0; node < graph.nodes.size(); ++node) clusters.of_node.push_back(clusterOf(NodeId(node)));
  clusters.visits = visits();
  return clusters;
}

void ClusterState::findAliasSources() {
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (!std::holds_alternative<AliasUpdate>(*node.op->alias)) continue;
    std::vector<Read> source;
    collect(node.operands[1], identityMap(graph.shapeOf(node.operands[1]).rank()), true, source);
    for (const Read& read : source) ++next_versions_[read.base.index()];
  }
}

void ClusterState::findUsers() {
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (computes(id)) {
      for (const Read& read : readsOf(node)) {
        users[read.base.index()].push_back(node.results[0]);
        ++reads_elsewhere_[read.base.index()];
      }
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
