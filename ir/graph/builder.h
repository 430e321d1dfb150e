// SPDX-License-Identifier: Apache-2.0
// Builds tensor IR: infers the result types through the op's rule and appends to the current region.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::graph {

class Builder {
 public:
  explicit Builder(Graph graph = {}) : graph_(std::move(graph)) {}
  [[nodiscard]] const Graph& graph() const { return graph_; }
  Graph& mutableGraph() { return graph_; }
  Graph take() { return std::move(graph_); }
  [[nodiscard]] const TensorType& typeOf(ValueId id) const { return graph_.typeOf(id); }
  [[nodiscard]] const Shape& shapeOf(ValueId id) const { return graph_.shapeOf(id); }

  /// Appends a node; the failure of the op's rule comes back as it is.
  Result<std::vector<ValueId>> tryMake(const OpDef& op, std::vector<ValueId> operands, Attributes attributes = {});
  /// For passes and gradients, whose operands are right by construction: a failure is an InternalError. First result.
  ValueId make(std::string_view op, std::vector<ValueId> operands, Attributes attributes = {});
  std::vector<ValueId> makeAll(std::string_view op, std::vector<ValueId> operands, Attributes attributes = {});
  /// A node that owns one region which is filled by later calls until endRegion(yields).
  void setLocation(uint32_t location) { location_ = location; }
  uint32_t addLocation(const Location& location);
  /// The place of a node of another graph; 0 where it has none.
  uint32_t addLocation(const Graph& from, const Node& node);
  /// The attributes of a node of another graph. The constants that they name come along.
  Attributes addAttributes(const Graph& from, const Node& node);
  void name(ValueId value, std::string name);
  void output(OutputKind kind, std::string name, ValueId value);

  // Shorthands that gradients and passes use; shapes are explicit in the IR, so these insert the broadcasts.
  ValueId constant(double value, const TensorType& type);
  ValueId constant(double value, const Shape& shape) { return constant(value, TensorType{DType::F32, shape}); }
  ValueId add(ValueId a, ValueId b);
  ValueId sub(ValueId a, ValueId b);
  ValueId mul(ValueId a, ValueId b);
  ValueId div(ValueId a, ValueId b);
  ValueId mul(ValueId a, double b);
  ValueId add(ValueId a, double b);
  ValueId neg(ValueId a);
  ValueId broadcastTo(ValueId a, const Shape& shape);  ///< returns `a` when it has the shape
  ValueId sumToShape(ValueId a, const Shape& shape);   ///< likewise
  ValueId reshape(ValueId a, const Shape& shape);      ///< likewise
  ValueId sum(ValueId a, int64_t axis, bool keep_dims);
  ValueId permute(ValueId a, std::vector<int64_t> permutation);
  ValueId swapLastAxes(ValueId a);

 private:
  ValueId binary(std::string_view op, ValueId a, ValueId b);
  Graph graph_;
  uint32_t location_ = 0;
};

/// Appends a copy of each of `nodes`, which belong to the builder's own graph, at its location: with the operands that `now` replaces, and
/// its results entered there.
void cloneNodes(Builder& builder, std::span<const NodeId> nodes, std::map<ValueId, ValueId>& now);

}  // namespace lockstep::graph
