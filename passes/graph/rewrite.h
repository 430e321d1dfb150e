// SPDX-License-Identifier: Apache-2.0
// What graph -> graph passes share: copying a graph node by node under a value map.
#pragma once

#include <vector>

#include "ir/graph/builder.h"

namespace lockstep::passes {

/// Copies `in` into a new graph. Parameters, symbols, constants and locations come along at once; nodes and outputs as the pass asks.
class Rewriter {
 public:
  explicit Rewriter(const graph::Graph& in);
  graph::Builder& builder() { return builder_; }
  /// The new value of an old one; InternalError before it was set.
  [[nodiscard]] graph::ValueId operator[](graph::ValueId old) const;
  [[nodiscard]] bool has(graph::ValueId old) const { return map_[old.index()].valid(); }
  void set(graph::ValueId old, graph::ValueId now) { map_[old.index()] = now; }
  [[nodiscard]] std::vector<graph::ValueId> mapped(const std::vector<graph::ValueId>& old) const;
  /// Copies the node with mapped operands, names and location; returns its results, which are also set in the map.
  std::vector<graph::ValueId> copy(const graph::Node& node);
  /// Copies the outputs that are not handled by the pass and gives the graph up.
  void copyOutput(const graph::Output& output);
  graph::Graph take() { return builder_.take(); }

 private:
  const graph::Graph& in_;
  graph::Builder builder_;
  std::vector<graph::ValueId> map_;
};

/// A graph with leaves for the operands of `node` and nothing else.
graph::Builder leavesFor(const graph::Graph& graph, const graph::Node& node, std::vector<graph::ValueId>& operands);

/// Removes the nodes that no output reaches; leaves with a name stay, because they are the program's interface.
graph::Graph removeDead(const graph::Graph& graph);

}  // namespace lockstep::passes
