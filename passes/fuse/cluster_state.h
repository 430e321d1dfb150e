// SPDX-License-Identifier: Apache-2.0
// What fuse knows while it makes clusters: who reads what through views, which cluster needs which, how many bindings a group would have.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "passes/fuse/cluster_graph.h"
#include "passes/fuse/clusters.h"

namespace lockstep::passes {

/// One read of a computed or stored value by a node, through views and cheap nodes.
struct Read {
  graph::ValueId base;
  graph::IndexMap map;  ///< from the reader's index space
  bool exact = true;    ///< false: read at computed positions (operandAt), so no position is known
};

/// What a kernel of some nodes would bind. It has about as many entries as bindings, however many nodes there are, so that asking whether
/// two clusters fit together does not get slower as they grow.
struct Footprint {
  std::map<graph::ValueId, uint32_t> loads;  ///< how often each value is read that is made elsewhere
  std::set<graph::ValueId> stores;           ///< results that others read, or that escape
};

class ClusterState {
 public:
  /// `cheap` nodes are computed wherever they are used (cheapNodes, addRepeatable).
  ClusterState(const graph::Graph& graph, const std::vector<bool>& storage, std::vector<bool> cheap, const FuseConfig& config);

  const graph::Graph& graph;
  const FuseConfig& config;
  Clusters out;
  /// Of the clusters so far, also by reads through storage nodes.
  ClusterGraph links;
  /// By value: the first results of the computing nodes that read it, through views and cheap nodes.
  std::vector<std::vector<graph::ValueId>> users;
  std::vector<bool> escapes;      ///< by value: read by a storage node or an output
  std::vector<char> row_aligned;  ///< by node: in a Rows cluster, 1 when the node has one value per row

  [[nodiscard]] Cluster& cluster(int32_t c) { return out.clusters[static_cast<size_t>(c)]; }
  [[nodiscard]] const Cluster& cluster(int32_t c) const { return out.clusters[static_cast<size_t>(c)]; }
  [[nodiscard]] int32_t clusterOf(graph::NodeId id) const {
    const int32_t label = label_of_[id.index()];
    return label < 0 ? -1 : cluster_of_label_[static_cast<size_t>(label)];
  }
  [[nodiscard]] int32_t clusterOf(graph::ValueId value) const { return clusterOf(graph[value].node); }
  [[nodiscard]] bool isMember(int32_t c, graph::ValueId value) const { return clusterOf(value) == c; }
  /// Neither storage, view nor cheap: a node that belongs to a cluster.
  [[nodiscard]] bool computes(graph::NodeId id) const;
  [[nodiscard]] const std::vector<Read>& readsOf(const graph::Node& node) const;
  /// What is read for the elements of one operand, from its own index space.
  [[nodiscard]] std::vector<Read> readsFor(graph::ValueId operand) const;

  /// Whether no circle comes of adding this node to cluster `c`: none of its other sources needs `c`, and it reads `c` not through storage.
  [[nodiscard]] bool staysAcyclic(graph::NodeId id, int32_t c) const;
  /// Whether the value has storage of its own, also when the node `except` does not read it.
  [[nodiscard]] bool isStored(graph::ValueId value, graph::NodeId except) const;
  /// Whether the node fits into the cluster.
  [[nodiscard]] bool fits(int32_t c, graph::NodeId extra) const;
  /// Whether the members of all these clusters fit together.
  [[nodiscard]] bool fitsWith(const std::vector<int32_t>& sources, int32_t target) const;
  /// The same with a node that is in no cluster yet.
  [[nodiscard]] bool fitsWith(const std::vector<int32_t>& sources, int32_t target, graph::NodeId extra) const;
  /// Whether all bindings are taken, so that nothing fits that reads or makes something of its own.
  [[nodiscard]] bool isFull(int32_t c) const { return bindings({&footprintOf(c)}, isOfRows(c)) >= config.max_bindings; }
  [[nodiscard]] bool isOfRows(int32_t c) const { return cluster(c).kind == graph::GroupKind::Rows; }

  int32_t newCluster(graph::GroupKind kind, graph::NodeId id, int64_t elements, int64_t columns = 1);
  void addTo(int32_t c, graph::NodeId id);
  /// Moves the members of `sources` to `target`, which they fit with; the sources are dead afterwards.
  void moveInto(const std::vector<int32_t>& sources, int32_t target);
  /// The clusters as they are now, with their members in execution order.
  [[nodiscard]] Clusters finished() const;
  /// What was looked at so far: clusters for reachability, bindings for what fits. It must not grow faster than the model.
  [[nodiscard]] uint64_t visits() const { return links.visits() + visits_; }

 private:
  /// Whether all members of a cluster may share it with others (FuseConfig::joining).
  [[nodiscard]] bool mayJoin(int32_t c) const;
  [[nodiscard]] bool fitsWith(const std::vector<int32_t>& sources, int32_t target, const Footprint* more, bool reduces) const;
  [[nodiscard]] const Footprint& footprintOf(int32_t c) const { return footprints_[static_cast<size_t>(c)]; }
  /// Of a node that is in no cluster yet.
  [[nodiscard]] Footprint footprintOf(graph::NodeId id) const;
  /// Storage bindings of one group of all these parts.
  [[nodiscard]] uint32_t bindings(const std::vector<const Footprint*>& parts, bool of_rows) const;
  /// `added`, whose nodes have been given to cluster `c`, becomes part of its footprint.
  void absorb(int32_t c, const Footprint& added);
  [[nodiscard]] bool isRead(graph::ValueId value) const { return escapes[value.index()] || reads_elsewhere_[value.index()] > 0; }
  void collect(graph::ValueId value, const graph::IndexMap& map, bool exact, std::vector<Read>& reads) const;
  [[nodiscard]] std::vector<Read> findReads(const graph::Node& node) const;
  /// The computing nodes that a storage node's value is made of.
  [[nodiscard]] const std::vector<graph::NodeId>& madeOf(graph::NodeId storage_node) const;
  /// The clusters that a node reads, and those among them that it reads through storage nodes.
  [[nodiscard]] std::map<int32_t, bool> sourcesOf(graph::NodeId id) const;
  void findAliasSources();
  void findUsers();
  void escape(graph::ValueId value);

  const std::vector<bool>& storage_;
  std::vector<bool> cheap_;
  mutable std::vector<std::optional<std::vector<Read>>> reads_of_;          // by node, found on the first question
  mutable std::vector<std::optional<std::vector<graph::NodeId>>> made_of_;  // likewise
  std::vector<uint32_t> next_versions_;                                     // by value: of how many states it becomes the next version
  std::vector<uint32_t> reads_elsewhere_;                                   // by value: how often nodes outside its cluster read it
  std::vector<Footprint> footprints_;                                       // by cluster
  // Clusters are merged by giving the smaller part the label of the larger one.
  std::vector<int32_t> label_of_;          // by node, -1 for none
  std::vector<int32_t> cluster_of_label_;  // by label
  std::vector<int32_t> label_of_cluster_;  // by cluster
  mutable uint64_t visits_ = 0;
};

/// How often a contraction loads each element of its operands: once for every tile of its results.
std::array<int64_t, 2> loadsPerElement(const graph::ContractShape& shape, const FuseConfig& config);
/// The element operations that make a value where it is read: cheap ones, and those that are `made` there.
size_t operationsOf(const ClusterState& state, graph::ValueId value, const std::function<bool(graph::NodeId)>& made);
/// Whether a node may make a value of so many operations again in each of its loads. Of a contraction, the results of a workgroup share a
/// load, and a window reads an element several times; others load an element once.
bool mayRepeatInLoads(const ClusterState& state, const graph::Node& node, graph::ValueId value, size_t operations);
/// Whether an element node has so many operations, for so many elements, that it stays out of a product (FuseConfig::heavy_apart).
bool isHeavy(const ClusterState& state, graph::NodeId id);
/// Element chains that meet: a map cluster moves into a cluster that reads it in place.
void mergeMaps(ClusterState& state);
/// A chain of cheap enough elements that only one contraction or column reduction reads is computed where it is read.
void absorbPrologues(ClusterState& state);
/// Adds to `cheap` the operations whose large result would be kept for other clusters although everything they read is in memory anyway:
/// one value of the same size, and small ones (activation + offset of its row). Then only one large value is kept. True when there is any.
bool addRepeatable(const ClusterState& state, std::vector<bool>& cheap);

}  // namespace lockstep::passes
