// SPDX-License-Identifier: Apache-2.0
// The first half of fuse: which nodes go into one group.
#pragma once

#include <set>
#include <vector>

#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "passes/fuse/fuse.h"

namespace lockstep::passes {

struct Cluster {
  graph::GroupKind kind = graph::GroupKind::Map;
  std::vector<graph::NodeId> members;  ///< computing nodes, in execution order
  int64_t elements = 0;                ///< of the index space: Map, Contract and Columns: of the results; Rows: rows * columns
  int64_t columns = 1;                 ///< Rows: elements of a row
  bool dead = false;                   ///< merged into another one
};

struct Clusters {
  std::vector<Cluster> clusters;
  std::vector<int32_t> of_node;  ///< cluster of each computing node, -1 for views, cheap nodes, leaves and storage

  uint64_t visits = 0;  ///< clusters and bindings that were looked at: the work that would grow fastest

  /// How many were not merged into another one.
  [[nodiscard]] std::ptrdiff_t live() const;
};

/// True for nodes that live outside groups: leaves, storage nodes, contiguous aligned slices of such values.
std::vector<bool> storageNodes(const graph::Graph& graph);
/// True for element nodes that are computed again wherever they are used: those whose op says so, and a few operations on values of at most
/// half as many elements (broadcasts), which take fewer bytes to read than the result would.
std::vector<bool> cheapNodes(const graph::Graph& graph, const std::vector<bool>& storage, const FuseConfig& config);
/// Takes nodes out of `cheap` until every computing node alone fits into a kernel: what it reads through cheap nodes is bound, too.
void keepWithinBindings(const graph::Graph& graph, const std::vector<bool>& storage, const FuseConfig& config, std::vector<bool>& cheap);

Clusters makeClusters(const graph::Graph& graph, const std::vector<bool>& storage, const FuseConfig& config);

}  // namespace lockstep::passes
