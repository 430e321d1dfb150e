// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/place_reductions.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "passes/cost.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// How far a reduction looks for others that it can run beside: at how many, and in how many clusters back. What it reads mostly needs
/// those of layers farther away, which takes long to find out, and a model with many layers has many of them.
constexpr size_t kMostSiblings = 32;
constexpr int32_t kNearClusters = 128;

struct ReductionPlacement {
  ClusterState& state;
  const Graph& graph;
  OpenReductions& open;

  void place(NodeId id) {
    const Node& node = graph[id];
    const auto& reduce = std::get<ReduceLowering>(*node.op->lower);
    const Shape& shape = graph.shapeOf(node.operands[0]);
    if (!reducesRows(graph, node)) {
      placeColumnReduce(id, reduce.axes(graph, node));
      return;
    }
    const int64_t columns = shape.elementCount() / graph.shapeOf(node.results[0]).elementCount();
    if (state.config.merge && (placeBesideProduct(id, columns) || placeBesideReader(id, columns))) return;
    if (!state.config.merge || !placeRowReduce(id, columns)) {
      state.newCluster(GroupKind::Rows, id, shape.elementCount(), columns);
      state.row_aligned[id.index()] = 1;
    }
    if (isOfOneRow(node, columns)) openOf(id, reduce.axes(graph, node)).push_back(state.clusterOf(id));
  }

  /// The clusters of the last nodes that read a value.
  [[nodiscard]] std::vector<int32_t> lastReaders(ValueId value) const {
    const std::vector<ValueId>& users = state.users[value.index()];
    // Nodes get their cluster in execution order, which is the order of users.
    const auto end = std::ranges::partition_point(users, [&](ValueId user) { return state.clusterOf(user) >= 0; });
    const auto begin = end - std::min<std::ptrdiff_t>(end - users.begin(), static_cast<std::ptrdiff_t>(kMostSiblings));
    std::vector<int32_t> readers;
    std::transform(begin, end, std::back_inserter(readers), [&](ValueId user) { return state.clusterOf(user); });
    return readers;
  }

  /// A reduction over trailing axes joins the rows cluster or turns the map cluster of its operand into one.
  bool placeRowReduce(NodeId id, int64_t columns) {
    const Node& node = graph[id];
    std::vector<Read> reads = state.readsOf(node);
    int64_t elements = graph.shapeOf(node.operands[0]).elementCount();
    std::set<int32_t, std::greater<>> sources;
    for (const Read& read : reads) {
      if (state.clusterOf(read.base) >= 0) sources.insert(state.clusterOf(read.base));
    }
    // Siblings: a rows cluster that reads the same value in the same space (maximum and sum of one row).
    for (const Read& read : reads) {
      for (const int32_t c : lastReaders(read.base)) {
        const Cluster& cluster = state.cluster(c);
        if (cluster.kind == GroupKind::Rows && cluster.elements == elements && cluster.columns == columns) sources.insert(c);
      }
    }
    for (int32_t c : sources) {
      Cluster& cluster = state.cluster(c);
      bool kind_fits = cluster.kind == GroupKind::Rows ? cluster.columns == columns : cluster.kind == GroupKind::Map;
      if (!kind_fits || cluster.elements != elements || !state.staysAcyclic(id, c) || !state.fits(c, id)) continue;
      bool seated = true;
      for (const Read& read : reads) {
        if (!state.isMember(c, read.base)) continue;
        const Shape &shape = graph.shapeOf(node.operands[0]), &source = graph.shapeOf(read.base);
        bool row = state.row_aligned[graph[read.base].node.index()] != 0;
        seated =
            seated && read.exact && (row ? isRowProjection(read.map, shape, source, columns) : isLinearIdentity(read.map, shape, source));
      }
      if (!seated) continue;
      cluster.kind = GroupKind::Rows;
      cluster.columns = columns;
      state.row_aligned[id.index()] = 1;
      state.addTo(c, id);
      return true;
    }
    return false;
  }

  /// Whether a value that rows are made of is the same for all of them.
  [[nodiscard]] bool isOneRow(ValueId value, int64_t columns) const {
    const std::vector<Read> reads = state.readsFor(value);
    return !reads.empty() &&
           std::ranges::all_of(reads, [&](const Read& read) { return read.exact && graph.shapeOf(read.base).elementCount() == columns; });
  }
  /// Whether a reduction is a matrix by a vector, or of one row that is repeated for each row of such a product.
  [[nodiscard]] bool isOfOneRow(const Node& node, int64_t columns) const {
    if (isOneRow(node.operands[0], columns)) return true;
    const Node& made = graph.definition(node.operands[0]);
    if (!std::holds_alternative<ElementLowering>(*made.op->lower)) return false;
    return std::ranges::any_of(made.operands, [&](ValueId operand) { return isOneRow(operand, columns); });
  }

  /// Whether clusters read nothing but vectors of that many elements and what is stored anyway.
  [[nodiscard]] bool waitsForLittle(const std::vector<int32_t>& clusters, int64_t columns) const {
    const auto isLittle = [&](const Read& read) {
      return state.clusterOf(read.base) < 0 || std::ranges::find(clusters, state.clusterOf(read.base)) != clusters.end() ||
             graph.shapeOf(read.base).elementCount() <= columns;
    };
    return std::ranges::all_of(clusters, [&](int32_t c) {
      return std::ranges::all_of(state.cluster(c).members,
                                 [&](NodeId id) { return std::ranges::all_of(state.readsOf(graph[id]), isLittle); });
    });
  }

  /// Products of one vector, in the same and in another order of their rows, and the scale of its norm are computed together: they read the
  /// same, and are read together.
  bool placeBesideProduct(NodeId id, int64_t columns) {
    const Node& node = graph[id];
    const Shape& shape = graph.shapeOf(node.operands[0]);
    if (columns == shape.elementCount() || columns > cost::kMostHeldColumns || !isOfOneRow(node, columns)) return false;
    const std::optional<std::vector<int32_t>> products = productsOf(id, columns);
    if (!products) return false;
    const auto isProduct = [&](int32_t c) { return std::ranges::find(*products, c) != products->end(); };
    for (const int32_t c : openOf(id, std::get<ReduceLowering>(*node.op->lower).axes(graph, node))) {
      const Cluster& cluster = state.cluster(c);
      if (cluster.dead || cluster.kind != GroupKind::Rows) continue;
      if (!waitsForLittle(*products, columns) && !worthJoining(node, cluster)) continue;
      const bool follows = std::ranges::any_of(state.links.sources(c), [&](const auto& other) {
        return isProduct(other.first) ||
               std::ranges::any_of(*products, [&](int32_t product) { return state.links.needs(other.first, product); });
      });
      if (follows || readsAny(id, c) || !state.staysAcyclic(id, c) || !state.fitsWith(*products, c, id)) continue;
      state.row_aligned[id.index()] = 1;
      state.moveInto(*products, c);
      state.addTo(c, id);
      return true;
    }
    return false;
  }

  /// A reduction over rows of what maps make runs where the same rows are reduced already and the maps' large values are read: they are
  /// read once, then.
  bool placeBesideReader(NodeId id, int64_t columns) {
    const Node& node = graph[id];
    const int64_t elements = graph.shapeOf(node.operands[0]).elementCount();
    if (elements <= cost::kLittleMemory) return false;
    const std::optional<std::vector<int32_t>> products = productsOf(id, columns);
    if (!products) return false;
    std::set<int32_t, std::greater<>> readers;
    for (const int32_t product : *products) {
      for (const NodeId member : state.cluster(product).members) {
        for (const Read& read : state.readsOf(graph[member])) {
          if (graph.shapeOf(read.base).elementCount() != elements) continue;
          for (const int32_t c : lastReaders(read.base)) {
            const Cluster& cluster = state.cluster(c);
            if (cluster.kind == GroupKind::Rows && cluster.elements == elements && cluster.columns == columns) readers.insert(c);
          }
        }
      }
    }
    for (const int32_t c : readers) {
      if (state.cluster(c).dead || readsAny(id, c) || !worthJoining(node, state.cluster(c))) continue;
      const bool follows = std::ranges::any_of(*products, [&](int32_t product) { return state.links.needs(c, product); });
      if (follows || !state.staysAcyclic(id, c) || !state.fitsWith(*products, c, id)) continue;
      state.row_aligned[id.index()] = 1;
      state.moveInto(*products, c);
      state.addTo(c, id);
      return true;
    }
    return false;
  }

  /// The maps that make what a reduction over rows sums up, element by element. They come along where it goes: alone they would be stored.
  /// Nothing where it reads something else that is larger than a row.
  [[nodiscard]] std::optional<std::vector<int32_t>> productsOf(NodeId id, int64_t columns) const {
    const Node& node = graph[id];
    const Shape& shape = graph.shapeOf(node.operands[0]);
    std::set<int32_t> found;
    for (const Read& read : state.readsOf(node)) {
      const int32_t c = state.clusterOf(read.base);
      const Shape& source = graph.shapeOf(read.base);
      if (c < 0 || source.elementCount() <= columns) continue;
      const bool is_map = state.cluster(c).kind == GroupKind::Map && state.cluster(c).elements == shape.elementCount();
      if (!is_map || !read.exact || !isLinearIdentity(read.map, shape, source)) return std::nullopt;
      found.insert(c);
    }
    return std::vector(found.begin(), found.end());
  }

  /// The clusters of reductions of the same space that were begun not long ago.
  std::deque<int32_t>& openOf(NodeId id, const std::vector<int64_t>& axes) {
    const Node& node = graph[id];
    std::deque<int32_t>& siblings = open[{axes, graph.shapeOf(node.operands[0]).extents(), graph.shapeOf(node.results[0]).extents()}];
    const auto begun = static_cast<int32_t>(state.out.clusters.size());
    while (!siblings.empty() && (siblings.size() > kMostSiblings || siblings.front() < begun - kNearClusters)) siblings.pop_front();
    return siblings;
  }

  /// The clusters that make what a reduction reads, also through the element chain that will be computed where it is read.
  [[nodiscard]] std::set<int32_t> makersOf(const Node& node) const {
    std::set<int32_t> makers;
    for (const Read& read : state.readsOf(node)) {
      int32_t c = state.clusterOf(read.base);
      if (c < 0) continue;
      makers.insert(c);
      if (state.cluster(c).kind != GroupKind::Map) continue;
      for (const auto& [source, stored] : state.links.sources(c)) makers.insert(source);
    }
    return makers;
  }

  /// Running together must not keep much memory waiting: what the reductions read is made together, or it is small.
  [[nodiscard]] bool worthJoining(const Node& node, const Cluster& cluster) const {
    if (graph.shapeOf(node.operands[0]).elementCount() <= cost::kLittleMemory) return true;
    std::set<int32_t> mine = makersOf(node);
    return std::any_of(cluster.members.begin(), cluster.members.end(), [&](NodeId member) {
      std::set<int32_t> theirs = makersOf(graph[member]);
      return std::any_of(mine.begin(), mine.end(), [&](int32_t maker) { return theirs.contains(maker); });
    });
  }

  /// Reductions of equal spaces over equal axes run as one kernel when that is cheap (the gains and offsets of a norm).
  void placeColumnReduce(NodeId id, const std::vector<int64_t>& axes) {
    const Node& node = graph[id];
    std::deque<int32_t>& siblings = openOf(id, axes);
    if (state.config.merge) {
      for (auto at = siblings.begin(); at != siblings.end();) {
        if (mayJoin(id, *at)) {
          state.addTo(*at, id);
          return;
        }
        at = state.isFull(*at) ? siblings.erase(at) : at + 1;
      }
    }
    siblings.push_back(state.newCluster(GroupKind::Columns, id, graph.shapeOf(node.results[0]).elementCount()));
  }

  [[nodiscard]] bool mayJoin(NodeId id, int32_t c) const {
    return !readsAny(id, c) && worthJoining(graph[id], state.cluster(c)) && state.staysAcyclic(id, c) && state.fits(c, id);
  }
  [[nodiscard]] bool readsAny(NodeId id, int32_t c) const {
    return std::ranges::any_of(state.readsOf(graph[id]), [&](const Read& read) { return state.isMember(c, read.base); });
  }
};

}  // namespace

void placeReduction(ClusterState& state, OpenReductions& open, NodeId id) { ReductionPlacement{state, state.graph, open}.place(id); }

}  // namespace lockstep::passes
