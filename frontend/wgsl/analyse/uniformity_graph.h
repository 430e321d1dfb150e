// SPDX-License-Identifier: Apache-2.0
// The graph of uniformity analysis for one function. An edge from A to B says: A is uniform only if B is.
#pragma once

#include <vector>

#include "frontend/wgsl/syntax/source.h"

namespace lockstep::wgsl {

using NodeId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

/// What a message can say about a node.
enum class Reason : uint8_t {
  None,
  Condition,        ///< control flow depends on the expression
  Assignment,       ///< an entity gets a value
  BuiltinValue,     ///< parameter of an entry point that differs between invocations
  Memory,           ///< read of a variable that other invocations may write
  BuiltinCall,      ///< a builtin function whose result differs
  FunctionResult,   ///< a function whose result differs
  FunctionPointer,  ///< a function that stores what differs through a pointer
};

struct UniformityNode {
  Reason reason = Reason::None;
  Span span;
  uint32_t subject = 0;   ///< index of an entity (Assignment, BuiltinValue, Memory), a builtin (BuiltinCall) or a function
  uint32_t argument = 0;  ///< FunctionPointer: which
};

class UniformityGraph {
 public:
  /// These two are in every graph.
  static constexpr NodeId kMayBeNonUniform = 0, kFlowStart = 1;

  void clear();
  NodeId add(const UniformityNode& node = {});
  void edge(NodeId from, NodeId to) { edges_.push_back({from, to}); }
  [[nodiscard]] const UniformityNode& operator[](NodeId id) const { return nodes_[id]; }

  /// For each node the next one on a shortest path to `target`, kNoNode where there is no path; the target has itself. The result is valid
  /// until the next call. Takes time in the number of nodes that have a path. The graph may not change between two calls.
  const std::vector<NodeId>& pathsTo(NodeId target);

 private:
  struct Edge {
    NodeId from, to;
  };
  void sortEdges();

  std::vector<UniformityNode> nodes_;
  std::vector<Edge> edges_;
  // Edges by their end: those into node n are users_[first_[n] .. first_[n + 1]).
  std::vector<uint32_t> first_;
  std::vector<NodeId> users_;
  std::vector<NodeId> next_;
  std::vector<NodeId> reached_;
};

}  // namespace lockstep::wgsl
