// SPDX-License-Identifier: Apache-2.0
#include "passes/clusters.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "passes/access.h"

namespace lockstep::passes {

using namespace graph;

std::string_view toString(ClusterKind kind) {
  static constexpr std::array<std::string_view, 4> kNames{"map", "rows", "columns", "contract"};
  return kNames[static_cast<size_t>(kind)];
}

bool isCheap(const Node& node) {
  const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
  return element != nullptr && element->cheap;
}

std::vector<bool> storageNodes(const Graph& graph) {
  std::vector<bool> storage(graph.nodes.size(), false);
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (std::holds_alternative<StorageLowering>(*node.op->lower)) storage[id.index()] = true;
    const auto* view = std::get_if<ViewLowering>(&*node.op->lower);
    if (view == nullptr || !storage[graph[node.operands[0]].node.index()]) continue;
    int64_t start = 0;
    storage[id.index()] = isContiguousSlice(view->map(graph, node), graph.shapeOf(node.results[0]), graph.shapeOf(node.operands[0]),
                                            kParameterAlignment, start);
  }
  return storage;
}

namespace {

/// One read of a computed or stored value by a node, through views and cheap nodes.
struct Read {
  ValueId base;
  IndexMap map;       ///< from the reader's index space
  bool exact = true;  ///< false: read at computed positions (operandAt), so no position is known
};

struct State {
  const Graph& graph;
  const std::vector<bool>& storage;
  const FuseConfig& config;
  Clusters out;
  std::vector<std::vector<ValueId>> users;  // by value: results of the computing nodes that read it (through views and cheap nodes)
  std::vector<bool> escapes;                // by value: read by a storage node or an output
  mutable std::vector<std::optional<std::vector<Read>>> reads_of;  // by node
  std::vector<char> row_aligned;                                   // by node: in a Rows cluster, 1 when the node has one value a row

  State(const Graph& g, const std::vector<bool>& s, const FuseConfig& c)
      : graph(g),
        storage(s),
        config(c),
        users(g.values.size()),
        escapes(g.values.size(), false),
        reads_of(g.nodes.size()),
        row_aligned(g.nodes.size(), 0) {
    out.of_node.assign(g.nodes.size(), -1);
  }

  [[nodiscard]] bool computes(NodeId id) const {
    const Node& node = graph[id];
    return !storage[id.index()] && !std::holds_alternative<ViewLowering>(*node.op->lower) && !isCheap(node);
  }

  /// Every base value that operand `value`, seen through `map` from a space of `shape`, reads.
  void collect(ValueId value, const IndexMap& map, bool exact, std::vector<Read>& reads) const {
    NodeId id = graph[value].node;
    const Node& node = graph[id];
    if (storage[id.index()] || computes(id)) {
      reads.push_back({value, map, exact});
      return;
    }
    if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
      IndexMap inner = view->map(graph, node);
      // Guards of two pads with different fills do not compose; the position then counts as unknown.
      bool clash = !map.guards.empty() && !inner.guards.empty() && map.fill != inner.fill;
      collect(node.operands[0], clash ? IndexMap{} : compose(map, inner, graph.shapeOf(value)), exact && !clash, reads);
      return;
    }
    const auto& element = std::get<ElementLowering>(*node.op->lower);  // cheap
    for (ValueId operand : node.operands) collect(operand, element.scalar_only ? IndexMap{} : map, exact && !element.scalar_only, reads);
  }

  /// Cached: the cycle checks ask for the same nodes again and again.
  [[nodiscard]] const std::vector<Read>& readsOf(const Node& node) const {
    std::optional<std::vector<Read>>& known = reads_of[graph[node.results[0]].node.index()];
    if (!known) known = findReads(node);
    return *known;
  }

  [[nodiscard]] std::vector<Read> findReads(const Node& node) const {
    std::vector<Read> reads;
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    for (ValueId operand : node.operands) {
      bool exact = element == nullptr || !element->scalar_only || graph.shapeOf(operand) == graph.shapeOf(node.results[0]);
      if (element != nullptr && element->scalar_only) exact = false;
      collect(operand, exact ? identityMap(graph.shapeOf(operand).rank()) : IndexMap{}, exact, reads);
    }
    return reads;
  }

  int32_t clusterOf(ValueId value) const { return out.of_node[graph[value].node.index()]; }

  [[nodiscard]] std::set<int32_t> dependencies(const Cluster& cluster) const {
    std::set<int32_t> found;
    for (NodeId id : cluster.members) {
      for (const Read& read : readsOf(graph[id])) {
        if (clusterOf(read.base) >= 0) found.insert(clusterOf(read.base));
        throughStorage(read.base, found);
      }
    }
    return found;
  }

  /// Storage nodes (pack, update_slice, slices of them) pass dependencies on.
  void throughStorage(ValueId value, std::set<int32_t>& found) const {
    NodeId id = graph[value].node;
    if (!storage[id.index()]) return;
    for (ValueId operand : graph[id].operands) {
      std::vector<Read> reads;
      collect(operand, identityMap(graph.shapeOf(operand).rank()), true, reads);
      for (const Read& read : reads) {
        if (clusterOf(read.base) >= 0) found.insert(clusterOf(read.base));
        throughStorage(read.base, found);
      }
    }
  }

  /// True when cluster `from` (transitively) needs cluster `target`.
  [[nodiscard]] bool needs(int32_t from, int32_t target) const {
    std::set<int32_t> seen;
    std::function<bool(int32_t)> visit = [&](int32_t c) {
      if (!seen.insert(c).second) return false;
      for (int32_t d : dependencies(out.clusters[static_cast<size_t>(c)])) {
        if (d == c) continue;
        if (d == target || visit(d)) return true;
      }
      return false;
    };
    return visit(from);
  }

  /// Adding a node with these reads to cluster `c` makes no circle iff none of its other sources needs `c`.
  [[nodiscard]] bool staysAcyclic(const std::vector<Read>& reads, int32_t c) const {
    std::set<int32_t> sources;
    for (const Read& read : reads) {
      if (clusterOf(read.base) >= 0) sources.insert(clusterOf(read.base));
      throughStorage(read.base, sources);
    }
    sources.erase(c);
    return std::none_of(sources.begin(), sources.end(), [&](int32_t s) { return needs(s, c); });
  }

  [[nodiscard]] bool isMember(int32_t c, ValueId value) const { return clusterOf(value) == c; }

  [[nodiscard]] uint32_t bindings(const std::vector<NodeId>& members) const {
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
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (!std::holds_alternative<AliasUpdate>(*node.op->alias)) continue;
      std::vector<Read> source;
      collect(node.operands[1], identityMap(graph.shapeOf(node.operands[1]).rank()), true, source);
      for (const Read& read : source) in_place += stores.contains(read.base) ? 1 : 0;
    }
    return static_cast<uint32_t>(loads.size() + stores.size()) - in_place;
  }

  [[nodiscard]] bool fits(int32_t c, NodeId extra) const {
    std::vector<NodeId> members = out.clusters[static_cast<size_t>(c)].members;
    members.push_back(extra);
    return bindings(members) <= config.max_bindings;
  }

  void addTo(int32_t c, NodeId id) {
    out.clusters[static_cast<size_t>(c)].members.push_back(id);
    out.of_node[id.index()] = c;
  }

  int32_t newCluster(ClusterKind kind, NodeId id, int64_t elements, int64_t columns = 1) {
    out.clusters.push_back({kind, {}, elements, columns});
    addTo(static_cast<int32_t>(out.clusters.size()) - 1, id);
    return static_cast<int32_t>(out.clusters.size()) - 1;
  }

  /// How an element node would sit in a cluster: 'f' at the full position, 'r' one value a row, 0 not at all.
  [[nodiscard]] char seat(int32_t c, const Node& node, const std::vector<Read>& reads) const {
    const Cluster& cluster = out.clusters[static_cast<size_t>(c)];
    const Shape& shape = graph.shapeOf(node.results[0]);
    char as = 0;
    for (const Read& read : reads) {
      if (!isMember(c, read.base)) continue;
      if (!read.exact) return 0;
      const Shape& source = graph.shapeOf(read.base);
      bool row = row_aligned[graph[read.base].node.index()] != 0;
      char now = 0;
      if (isLinearIdentity(read.map, shape, source)) {
        now = row ? 'r' : 'f';
      } else if (row && isRowProjection(read.map, shape, source, cluster.columns) && shape.elementCount() == cluster.elements) {
        now = 'f';
      }
      if (now == 0 || (as != 0 && as != now)) return 0;
      as = now;
    }
    return as;
  }

  /// The cluster that the node joins: the last made one of its sources that has a seat for it.
  void placeElement(NodeId id) {
    const Node& node = graph[id];
    std::vector<Read> reads = readsOf(node);
    std::set<int32_t, std::greater<>> sources;
    for (const Read& read : reads) {
      if (clusterOf(read.base) >= 0) sources.insert(clusterOf(read.base));
    }
    if (config.merge) {
      for (int32_t c : sources) {
        char as = seat(c, node, reads);
        if (as == 0 || !staysAcyclic(reads, c) || !fits(c, id)) continue;
        row_aligned[id.index()] = as == 'r' ? 1 : 0;
        addTo(c, id);
        return;
      }
    }
    newCluster(ClusterKind::Map, id, graph.shapeOf(node.results[0]).elementCount());
  }

  [[nodiscard]] bool hasReduce(const Cluster& cluster) const {
    return std::any_of(cluster.members.begin(), cluster.members.end(),
                       [&](NodeId id) { return std::holds_alternative<ReduceLowering>(*graph[id].op->lower); });
  }

  /// A reduction over trailing axes joins the rows cluster or turns the map cluster of its operand into one.
  bool placeRowReduce(NodeId id, int64_t columns) {
    const Node& node = graph[id];
    std::vector<Read> reads = readsOf(node);
    int64_t elements = graph.shapeOf(node.operands[0]).elementCount();
    std::set<int32_t, std::greater<>> sources;
    for (const Read& read : reads) {
      if (clusterOf(read.base) >= 0) sources.insert(clusterOf(read.base));
    }
    // Siblings: a rows cluster that reads the same value in the same space (maximum and sum of one row).
    for (size_t c = out.clusters.size(); c-- > 0;) {
      const Cluster& cluster = out.clusters[c];
      if (cluster.dead || cluster.kind != ClusterKind::Rows || cluster.elements != elements || cluster.columns != columns) continue;
      for (NodeId member : cluster.members) {
        for (const Read& other : readsOf(graph[member])) {
          if (std::any_of(reads.begin(), reads.end(), [&](const Read& read) { return read.base == other.base; }))
            sources.insert(static_cast<int32_t>(c));
        }
      }
    }
    for (int32_t c : sources) {
      Cluster& cluster = out.clusters[static_cast<size_t>(c)];
      bool kind_fits = cluster.kind == ClusterKind::Rows ? cluster.columns == columns : cluster.kind == ClusterKind::Map;
      if (!kind_fits || cluster.elements != elements || !staysAcyclic(reads, c) || !fits(c, id)) continue;
      bool seated = true;
      for (const Read& read : reads) {
        if (!isMember(c, read.base)) continue;
        const Shape &shape = graph.shapeOf(node.operands[0]), &source = graph.shapeOf(read.base);
        bool row = row_aligned[graph[read.base].node.index()] != 0;
        seated =
            seated && read.exact && (row ? isRowProjection(read.map, shape, source, columns) : isLinearIdentity(read.map, shape, source));
      }
      if (!seated) continue;
      cluster.kind = ClusterKind::Rows;
      cluster.columns = columns;
      row_aligned[id.index()] = 1;
      addTo(c, id);
      return true;
    }
    return false;
  }

  void placeReduce(NodeId id) {
    const Node& node = graph[id];
    const auto& reduce = std::get<ReduceLowering>(*node.op->lower);
    const Shape& shape = graph.shapeOf(node.operands[0]);
    std::vector<int64_t> axes = reduce.axes(graph, node);
    size_t first = shape.rank() - axes.size();
    bool trailing = true;
    int64_t columns = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      trailing = trailing && axes[i] == static_cast<int64_t>(first + i);
      columns *= shape.extent(static_cast<size_t>(axes[i]));
    }
    if (!trailing) {
      if (!config.merge || !joinSiblingColumns(id, axes))
        newCluster(ClusterKind::Columns, id, graph.shapeOf(node.results[0]).elementCount());
      return;
    }
    if (config.merge && placeRowReduce(id, columns)) return;
    newCluster(ClusterKind::Rows, id, shape.elementCount(), columns);
    row_aligned[id.index()] = 1;
  }

  /// The clusters that make what a reduction reads, also through the element chain that will be computed where it is read.
  [[nodiscard]] std::set<int32_t> makersOf(const Node& node) const {
    std::set<int32_t> makers;
    for (const Read& read : readsOf(node)) {
      int32_t c = clusterOf(read.base);
      if (c < 0) continue;
      makers.insert(c);
      if (out.clusters[static_cast<size_t>(c)].kind == ClusterKind::Map) makers.merge(dependencies(out.clusters[static_cast<size_t>(c)]));
    }
    return makers;
  }

  /// Running together must not keep much memory waiting: what the reductions read is made together, or it is small.
  [[nodiscard]] bool worthJoining(const Node& node, const Cluster& cluster) const {
    static constexpr int64_t kSmall = 4096;  // elements
    if (graph.shapeOf(node.operands[0]).elementCount() <= kSmall) return true;
    std::set<int32_t> mine = makersOf(node);
    return std::any_of(cluster.members.begin(), cluster.members.end(), [&](NodeId member) {
      std::set<int32_t> theirs = makersOf(graph[member]);
      return std::any_of(mine.begin(), mine.end(), [&](int32_t maker) { return theirs.contains(maker); });
    });
  }

  /// Reductions of equal spaces over equal axes run as one kernel when that is cheap (the gains and offsets of a norm).
  bool joinSiblingColumns(NodeId id, const std::vector<int64_t>& axes) {
    const Node& node = graph[id];
    std::vector<Read> reads = readsOf(node);
    for (size_t c = 0; c < out.clusters.size(); ++c) {
      const Cluster& cluster = out.clusters[c];
      if (cluster.dead || cluster.kind != ClusterKind::Columns) continue;
      const Node& seed = graph[cluster.members.front()];
      const auto* reduce = std::get_if<ReduceLowering>(&*seed.op->lower);
      if (reduce == nullptr || reduce->axes(graph, seed) != axes || graph.shapeOf(seed.operands[0]) != graph.shapeOf(node.operands[0]))
        continue;
      if (graph.shapeOf(seed.results[0]) != graph.shapeOf(node.results[0]) || !worthJoining(node, cluster)) continue;
      int32_t index = static_cast<int32_t>(c);
      if (std::any_of(reads.begin(), reads.end(), [&](const Read& read) { return isMember(index, read.base); })) continue;
      if (!staysAcyclic(reads, index) || !fits(index, id)) continue;
      bool needed = std::any_of(reads.begin(), reads.end(),
                                [&](const Read& read) { return clusterOf(read.base) >= 0 && needs(clusterOf(read.base), index); });
      if (needed) continue;
      addTo(index, id);
      return true;
    }
    return false;
  }

  /// A chain of cheap enough elements that only one contraction or column reduction reads is computed where it is read.
  void absorbPrologues() {
    for (size_t c = out.clusters.size(); c-- > 0;) {
      Cluster& cluster = out.clusters[c];
      if (cluster.dead || cluster.kind != ClusterKind::Map) continue;
      int32_t target = -1;
      bool legal = true;
      std::set<NodeId> inside(cluster.members.begin(), cluster.members.end());
      for (NodeId id : cluster.members) {
        const auto& element = std::get<ElementLowering>(*graph[id].op->lower);
        legal = legal && !element.transcendental;
        for (ValueId result : graph[id].results) {
          legal = legal && !escapes[result.index()];
          for (ValueId user : users[result.index()]) {
            NodeId user_node = graph[user].node;
            if (inside.contains(user_node)) continue;
            int32_t user_cluster = out.of_node[user_node.index()];
            bool seed = std::holds_alternative<ContractLowering>(*graph[user_node].op->lower) ||
                        std::holds_alternative<ReduceLowering>(*graph[user_node].op->lower);
            legal = legal && seed && (target < 0 || target == user_cluster);
            target = user_cluster;
          }
        }
      }
      if (!legal || target < 0) continue;
      Cluster& consumer = out.clusters[static_cast<size_t>(target)];
      if (consumer.kind != ClusterKind::Contract && consumer.kind != ClusterKind::Columns) continue;
      std::vector<NodeId> members = cluster.members;
      members.insert(members.end(), consumer.members.begin(), consumer.members.end());
      if (bindings(members) > config.max_bindings) continue;
      consumer.members = members;
      for (NodeId id : cluster.members) out.of_node[id.index()] = target;
      cluster.members.clear();
      cluster.dead = true;
    }
  }

  /// Whether every read of `source` by `target` finds the element that the reader's invocation makes.
  [[nodiscard]] bool readsInPlace(int32_t target, int32_t source) const {
    const Cluster& cluster = out.clusters[static_cast<size_t>(target)];
    for (NodeId id : cluster.members) {
      const Node& node = graph[id];
      for (const Read& read : readsOf(node)) {
        if (!isMember(source, read.base)) continue;
        bool seed = !std::holds_alternative<ElementLowering>(*node.op->lower);
        if (seed && cluster.kind != ClusterKind::Rows) return false;  // the operand side of a contraction or column sum
        bool row = row_aligned[id.index()] != 0 && !seed;
        const Shape& shape = seed ? graph.shapeOf(node.operands[0]) : graph.shapeOf(node.results[0]);
        if (!read.exact || row || !isLinearIdentity(read.map, shape, graph.shapeOf(read.base))) return false;
      }
    }
    return true;
  }

  /// Element chains that meet: a map cluster moves into a cluster that reads it in place.
  bool mergeMap(int32_t source) {
    Cluster& from = out.clusters[static_cast<size_t>(source)];
    for (size_t c = 0; c < out.clusters.size(); ++c) {
      auto target = static_cast<int32_t>(c);
      Cluster& to = out.clusters[c];
      if (target == source || to.dead || to.elements != from.elements) continue;
      if (to.kind == ClusterKind::Columns) continue;  // its elements are those of the results only
      std::set<int32_t> needed = dependencies(to);
      if (!needed.contains(source) || !readsInPlace(target, source)) continue;
      // No other way from the source to the target.
      needed.erase(source);
      needed.erase(target);
      if (std::any_of(needed.begin(), needed.end(), [&](int32_t n) { return needs(n, source); })) continue;
      std::vector<NodeId> members = from.members;
      members.insert(members.end(), to.members.begin(), to.members.end());
      if (bindings(members) > config.max_bindings) continue;
      to.members = std::move(members);
      for (NodeId id : from.members) out.of_node[id.index()] = target;
      from.members.clear();
      from.dead = true;
      return true;
    }
    return false;
  }

  void mergeMaps() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t c = 0; c < out.clusters.size(); ++c) {
        if (!out.clusters[c].dead && out.clusters[c].kind == ClusterKind::Map) changed = mergeMap(static_cast<int32_t>(c)) || changed;
      }
    }
  }

  void findUsers() {
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (computes(id)) {
        for (const Read& read : readsOf(node)) users[read.base.index()].push_back(node.results[0]);
      } else if (storage[id.index()]) {
        for (ValueId operand : node.operands) escape(operand);
      }
    }
    for (const Output& output : graph.outputs) escape(output.value);
  }

  void escape(ValueId value) {
    std::vector<Read> reads;
    collect(value, identityMap(graph.shapeOf(value).rank()), true, reads);
    for (const Read& read : reads) escapes[read.base.index()] = true;
  }
};

}  // namespace

Clusters makeClusters(const Graph& graph, const std::vector<bool>& storage, const FuseConfig& config) {
  State state(graph, storage, config);
  state.findUsers();
  for (NodeId id : graph.body().nodes) {
    if (!state.computes(id)) continue;
    const Node& node = graph[id];
    if (std::holds_alternative<ElementLowering>(*node.op->lower)) {
      state.placeElement(id);
    } else if (std::holds_alternative<ReduceLowering>(*node.op->lower)) {
      state.placeReduce(id);
    } else if (std::holds_alternative<ContractLowering>(*node.op->lower)) {
      state.newCluster(ClusterKind::Contract, id, graph.shapeOf(node.results[0]).elementCount());
    } else {
      internalError("fuse met an op that should have been decomposed: " + std::string(*node.op->name));
    }
  }
  if (config.merge) {
    state.mergeMaps();
    state.absorbPrologues();
  }
  for (Cluster& cluster : state.out.clusters) std::sort(cluster.members.begin(), cluster.members.end());
  return state.out;
}

}  // namespace lockstep::passes
