// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/clusters.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "passes/cost.h"
#include "passes/fuse/cluster_state.h"
#include "passes/fuse/views.h"
#include "passes/visits.h"

namespace lockstep::passes {

using namespace graph;

std::ptrdiff_t Clusters::live() const {
  return std::ranges::count_if(clusters, [](const Cluster& cluster) { return !cluster.dead; });
}

namespace {

/// How far a reduction looks for others that it can run beside: at how many, and in how many clusters back. What it reads mostly needs
/// those of layers farther away, which takes long to find out, and a model with many layers has many of them.
constexpr size_t kMostSiblings = 32;
constexpr int32_t kNearClusters = 128;

/// Gives every computing node its cluster, in execution order.
struct Placement {
  /// Of reductions that may run together: their axes, the extents of what they read and of what they make.
  using Space = std::array<std::vector<int64_t>, 3>;

  ClusterState& state;
  const Graph& graph;
  std::map<Space, std::deque<int32_t>> open = {};  ///< clusters of reductions that may take one more
  std::vector<int64_t> levels = {};                ///< by cluster: the least level in which it can run, as far as it was known when it grew
  std::set<int32_t> late = {};                     ///< clusters of sums that no product was to make
  std::map<int32_t, int32_t> apart = {};           ///< by product, the first cluster of heavy nodes that read it

  /// How a node of a cluster makes its elements: each at its own position, or one for each row of the cluster's space.
  enum class Seat : uint8_t { PerElement, PerRow };

  /// How an element node reads one member of a cluster; nothing: the two cannot run together.
  [[nodiscard]] std::optional<Seat> seatBeside(const Cluster& cluster, const Shape& shape, const Read& read) const {
    if (!read.exact || cluster.kind == GroupKind::Template) return std::nullopt;
    const Shape& source = graph.shapeOf(read.base);
    const bool per_row = state.row_aligned[graph[read.base].node.index()] != 0;
    if (isLinearIdentity(read.map, shape, source)) return per_row ? Seat::PerRow : Seat::PerElement;
    // A row's value that all elements of the row read.
    const bool spreads = per_row && isRowProjection(read.map, shape, source, cluster.columns) && shape.elementCount() == cluster.elements;
    return spreads ? std::optional(Seat::PerElement) : std::nullopt;
  }

  /// How an element node would sit in a cluster that makes some of what it reads; nothing: not at all.
  [[nodiscard]] std::optional<Seat> seatIn(int32_t c, const Node& node, const std::vector<Read>& reads) const {
    std::optional<Seat> found;
    for (const Read& read : reads) {
      if (!state.isMember(c, read.base)) continue;
      const std::optional<Seat> seat = seatBeside(state.cluster(c), graph.shapeOf(node.results[0]), read);
      if (!seat || (found && found != seat)) return std::nullopt;
      found = seat;
    }
    return found;
  }

  /// Whether what a pick reads of a cluster of rows is of its own row: elements of its first operand, and one place per row.
  [[nodiscard]] bool picksInRow(int32_t c, const Node& node) const {
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Shape& shape = graph.shapeOf(node.operands[i]);
      for (const Read& read : state.readsFor(node.operands[i])) {
        if (!state.isMember(c, read.base)) continue;
        const Shape& source = graph.shapeOf(read.base);
        const bool per_row = state.row_aligned[graph[read.base].node.index()] != 0;
        const bool spreads = i == 0 && per_row;
        const bool in_row =
            spreads ? isRowProjection(read.map, shape, source, state.cluster(c).columns) : isLinearIdentity(read.map, shape, source);
        if (!read.exact || !in_row || (i > 0 && !per_row)) return false;
      }
    }
    return true;
  }

  /// A value that is picked out of each row (the logit of a class) joins the reductions of these rows, so that nobody else reads them.
  bool placeRowPick(NodeId id) {
    const Node& node = graph[id];
    const auto& element = std::get<ElementLowering>(*node.op->lower);
    if (!state.config.merge || element.within_row == nullptr || !element.within_row(graph, node)) return false;
    const Shape& shape = graph.shapeOf(node.operands[0]);
    const int64_t columns = shape.extent(shape.rank() - 1);
    if (graph.shapeOf(node.results[0]).elementCount() * columns != shape.elementCount()) return false;
    std::set<int32_t, std::greater<>> rows;
    for (const Read& read : state.readsOf(node)) {
      if (state.clusterOf(read.base) >= 0) rows.insert(state.clusterOf(read.base));
    }
    for (const int32_t c : rows) {
      const Cluster& cluster = state.cluster(c);
      const bool is_of_rows = cluster.kind == GroupKind::Rows && cluster.elements == shape.elementCount() && cluster.columns == columns;
      if (!is_of_rows || !picksInRow(c, node) || !state.staysAcyclic(id, c) || !state.fits(c, id)) continue;
      state.row_aligned[id.index()] = 1;
      state.addTo(c, id);
      return true;
    }
    return false;
  }

  [[nodiscard]] int64_t levelOf(int32_t c) const { return static_cast<size_t>(c) < levels.size() ? levels[static_cast<size_t>(c)] : 0; }
  /// To be called for each node once it has a cluster.
  void noteLevel(NodeId id) {
    const int32_t c = state.clusterOf(id);
    if (static_cast<size_t>(c) >= levels.size()) levels.resize(static_cast<size_t>(c) + 1, 0);
    for (const auto& [source, stored] : state.links.sources(c)) levels[static_cast<size_t>(c)] = std::max(levelOf(c), levelOf(source) + 1);
  }

  [[nodiscard]] bool isLateSum(int32_t c) const { return state.cluster(c).kind == GroupKind::Map && late.contains(c); }
  /// Whether a product would wait for another one if it made the sum, and the sum is small enough for its reader to add them (late_sums).
  [[nodiscard]] bool wouldWait(int32_t c, const std::set<int32_t, std::greater<>>& sources, const Node& node) const {
    if (state.cluster(c).kind != GroupKind::Contract || graph.shapeOf(node.results[0]).elementCount() > state.config.late_sums)
      return false;
    return std::ranges::any_of(sources, [&](int32_t other) {
      const bool is_sum = state.cluster(other).kind == GroupKind::Contract || isLateSum(other);
      return other != c && is_sum && levelOf(other) >= levelOf(c);
    });
  }

  /// The cluster that the node joins: the last made one of its sources that has a seat for it.
  void placeElement(NodeId id) {
    if (placeRowPick(id)) return;
    const Node& node = graph[id];
    std::vector<Read> reads = state.readsOf(node);
    std::set<int32_t, std::greater<>> sources;
    for (const Read& read : reads) {
      if (state.clusterOf(read.base) >= 0) sources.insert(state.clusterOf(read.base));
    }
    bool is_late = false;
    const bool is_heavy = isHeavy(state, id);
    if (state.config.merge) {
      for (int32_t c : sources) {
        if (is_heavy && state.cluster(c).kind == GroupKind::Contract) {
          if (joinsApart(id, c, reads)) return;
          continue;
        }
        if (wouldWait(c, sources, node)) {
          is_late = true;
          continue;
        }
        // Readers of other clusters would wait for the products, too.
        if (is_late && state.cluster(c).kind != GroupKind::Contract && !isLateSum(c)) continue;
        const std::optional<Seat> seat = seatIn(c, node, reads);
        if (!seat || !state.staysAcyclic(id, c) || !state.fits(c, id)) continue;
        state.row_aligned[id.index()] = *seat == Seat::PerRow ? 1 : 0;
        state.addTo(c, id);
        return;
      }
    }
    const int32_t own = state.newCluster(GroupKind::Map, id, graph.shapeOf(node.results[0]).elementCount());
    if (is_late) late.insert(own);
    for (const int32_t c : sources) {
      if (is_heavy && state.cluster(c).kind == GroupKind::Contract) apart.emplace(c, own);
    }
  }

  /// Lets a heavy node run in the map of another one that reads product `c`, unless its result takes more bytes than what it reads, which
  /// is in memory anyway. True when it has joined.
  bool joinsApart(NodeId id, int32_t c, const std::vector<Read>& reads) {
    const auto found = apart.find(c);
    if (found == apart.end() || state.cluster(found->second).kind != GroupKind::Map) return false;
    const TensorType& result = graph.typeOf(graph[id].results[0]);
    const bool fits = std::ranges::all_of(reads, [&](const Read& read) {
      const TensorType& type = graph.typeOf(read.base);
      return read.exact && isLinearIdentity(read.map, result.shape, type.shape) && result.byteSize() <= type.byteSize();
    });
    if (!fits || !state.staysAcyclic(id, found->second) || !state.fits(found->second, id)) return false;
    state.addTo(found->second, id);
    return true;
  }

  /// Late sums that no reader took are made by a product after all: a dispatch of their own would be a level, too.
  void placeLateSums() {
    for (const int32_t c : late) {
      if (state.cluster(c).dead || state.cluster(c).kind != GroupKind::Map) continue;
      if (std::ranges::any_of(state.cluster(c).members, [&](NodeId member) { return isHeavy(state, member); })) continue;
      std::vector<int32_t> sources;
      for (const auto& [source, stored] : state.links.sources(c)) {
        if (!stored && state.cluster(source).kind == GroupKind::Contract) sources.insert(sources.begin(), source);
      }
      for (const int32_t source : sources) {
        const auto isSeated = [&](NodeId member) {
          const std::vector<Read>& reads = state.readsOf(graph[member]);
          const bool reads_it = std::ranges::any_of(reads, [&](const Read& read) { return state.isMember(source, read.base); });
          return !reads_it || seatIn(source, graph[member], reads) == Seat::PerElement;
        };
        const bool detour = std::ranges::any_of(
            state.links.sources(c), [&](const auto& other) { return other.first != source && state.links.needs(other.first, source); });
        if (detour || !std::ranges::all_of(state.cluster(c).members, isSeated) || !state.fitsWith({c}, source)) continue;
        state.moveInto({c}, source);
        break;
      }
    }
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

  void placeReduce(NodeId id) {
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

/// The kind of the cluster that a node starts alone; elements around it may join later.
std::optional<GroupKind> seedKind(const Node& node) {
  const Lowering& lower = *node.op->lower;
  if (std::holds_alternative<ContractLowering>(lower)) return GroupKind::Contract;
  if (std::holds_alternative<ScanLowering>(lower)) return GroupKind::Scan;
  if (std::holds_alternative<ScatterLowering>(lower)) return GroupKind::Scatter;
  if (std::holds_alternative<TemplateLowering>(lower)) return GroupKind::Template;
  return std::nullopt;
}

/// All nodes placed and merged; `cheap` nodes are in no cluster.
ClusterState placed(const Graph& graph, const std::vector<bool>& storage, std::vector<bool> cheap, const FuseConfig& config) {
  ClusterState state(graph, storage, std::move(cheap), config);
  Placement placement{state, graph};
  for (NodeId id : graph.body().nodes) {
    if (!state.computes(id)) continue;
    const Node& node = graph[id];
    if (std::holds_alternative<ElementLowering>(*node.op->lower)) {
      placement.placeElement(id);
    } else if (std::holds_alternative<ReduceLowering>(*node.op->lower)) {
      placement.placeReduce(id);
    } else if (std::optional<GroupKind> kind = seedKind(node)) {
      state.newCluster(*kind, id, graph.shapeOf(node.results[0]).elementCount());
    } else {
      internalError("fuse met an op that should have been decomposed: " + std::string(*node.op->name));
    }
    placement.noteLevel(id);
  }
  if (config.merge) {
    mergeMaps(state);
    placement.placeLateSums();
    absorbPrologues(state);
  }
  return state;
}

}  // namespace

Clusters makeClusters(const Graph& graph, const std::vector<bool>& storage, const FuseConfig& config) {
  std::vector<bool> cheap = cheapNodes(graph, storage, config);
  keepWithinBindings(graph, storage, config, cheap);
  const ClusterState state = placed(graph, storage, cheap, config);
  Clusters clusters = state.finished();
  if (config.merge && addRepeatable(state, cheap)) {
    keepWithinBindings(graph, storage, config, cheap);
    Clusters leaner = placed(graph, storage, std::move(cheap), config).finished();
    leaner.visits += clusters.visits;
    // Readers that compute more read more, and may be too full to be merged.
    if (leaner.live() <= clusters.live()) clusters = std::move(leaner);
  }
  countVisits(clusters.visits);
  return clusters;
}

}  // namespace lockstep::passes
