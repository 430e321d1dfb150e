// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/clusters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "passes/cost.h"
#include "passes/fuse/cluster_state.h"
#include "passes/fuse/place_reductions.h"
#include "passes/fuse/views.h"
#include "passes/visits.h"

namespace lockstep::passes {

using namespace graph;

std::ptrdiff_t Clusters::live() const {
  return std::ranges::count_if(clusters, [](const Cluster& cluster) { return !cluster.dead; });
}

namespace {

/// Gives every element node its cluster, in execution order.
struct Placement {
  ClusterState& state;
  const Graph& graph;
  std::vector<int64_t> levels = {};       ///< by cluster: the least level in which it can run, as far as it was known when it grew
  std::set<int32_t> late = {};            ///< clusters of sums that no product was to make
  std::map<int32_t, int32_t> apart = {};  ///< by product, the first cluster of heavy nodes that read it

  /// How a node of a cluster makes its elements: each at its own position, or one for each row of the cluster's space.
  enum class Seat : uint8_t { PerElement, PerRow };

  /// Whether the cluster's kernel can make more of each element that it stores. Templates store some elements as vectors, or in several
  /// steps; those of digits store each alone and once.
  [[nodiscard]] bool takesEpilogue(const Cluster& cluster) const {
    return cluster.kind != GroupKind::Template || std::ranges::any_of(cluster.members, [&](NodeId member) {
             const auto* lowering = std::get_if<TemplateLowering>(&*graph[member].op->lower);
             return lowering != nullptr && lowering->shape(graph, graph[member]).form == TemplateForm::Digits;
           });
  }

  /// How an element node reads one member of a cluster; nothing: the two cannot run together.
  [[nodiscard]] std::optional<Seat> seatBeside(const Cluster& cluster, const Shape& shape, const Read& read) const {
    if (!read.exact || !takesEpilogue(cluster)) return std::nullopt;
    const Shape& source = graph.shapeOf(read.base);
    const bool per_row = state.row_aligned[graph[read.base].node.index()] != 0;
    if (isLinearIdentity(read.map, shape, source)) return per_row ? Seat::PerRow : Seat::PerElement;
    // A row's value that all elements of the row read.
    const bool spreads = per_row && isRowProjection(read.map, shape, source, cluster.columns) && shape.elementCount() == cluster.elements;
    return spreads ? std::optional(Seat::PerElement) : std::nullopt;
  }

  /// How an element node would sit in a cluster that makes some of what it reads; nothing: not at all.
  [[nodiscard]] std::optional<Seat> seatIn(int32_t c, const Node& node, const std::vector<Read>& reads) const {
    // Elements that are stored one by one cannot share words.
    if (state.cluster(c).kind == GroupKind::Template && isPacked(graph.typeOf(node.results[0]).dtype)) return std::nullopt;
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
    const GroupKind kind = state.cluster(c).kind;
    const bool is_product = kind == GroupKind::Contract || kind == GroupKind::Template;
    if (!is_product || graph.shapeOf(node.results[0]).elementCount() > state.config.late_sums) return false;
    return std::ranges::any_of(sources, [&](int32_t other) {
      const bool is_sum = state.cluster(other).kind == kind || isLateSum(other);
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
  OpenReductions reductions;
  for (NodeId id : graph.body().nodes) {
    if (!state.computes(id)) continue;
    const Node& node = graph[id];
    if (std::holds_alternative<ElementLowering>(*node.op->lower)) {
      placement.placeElement(id);
    } else if (std::holds_alternative<ReduceLowering>(*node.op->lower)) {
      placeReduction(state, reductions, id);
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
