// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/reorder_sums.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Operations that a reordered sum takes with it.
constexpr int kMostOperations = 8;

class Reorderer {
 public:
  explicit Reorderer(const Graph& graph) : graph_(graph), rewriter_(graph) {}

  Graph run() {
    for (const NodeId id : graph_.body().nodes) {
      const Node& node = graph_[id];
      if (isReordering(node) && holdsSum(node.operands[0])) {
        builder().setLocation(node.location);
        const ValueId made = reordered(node.results[0], {});
        builder().name(made, graph_[node.results[0]].name);
        rewriter_.set(node.results[0], made);
      } else {
        rewriter_.copy(node);
      }
    }
    for (const Output& output : graph_.outputs) rewriter_.copyOutput(output);
    return removeDead(rewriter_.take());
  }

 private:
  /// Views from the innermost one on.
  using Chain = std::vector<const Node*>;
  Builder& builder() { return rewriter_.builder(); }

  /// Whether a view has each element of its operand once, and can be one of several rows at once.
  [[nodiscard]] bool isShuffle(const Node& node) const {
    return std::holds_alternative<ViewLowering>(*node.op->lower) && node.op->lift != nullptr && node.operands.size() == 1 &&
           graph_.shapeOf(node.results[0]).elementCount() == graph_.shapeOf(node.operands[0]).elementCount();
  }
  [[nodiscard]] bool isReordering(const Node& node) const {
    if (!isShuffle(node)) return false;
    const Shape &shape = graph_.shapeOf(node.results[0]), &source = graph_.shapeOf(node.operands[0]);
    return !isLinearIdentity(std::get<ViewLowering>(*node.op->lower).map(graph_, node), shape, source);
  }
  [[nodiscard]] bool isPlain(const Node& node) const {
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    const auto isOfShape = [&](ValueId operand) { return graph_.shapeOf(operand) == graph_.shapeOf(node.results[0]); };
    return element != nullptr && !element->scalar_only && !node.operands.empty() && std::ranges::all_of(node.operands, isOfShape);
  }
  /// Also where stored numbers of few bits are widened, with their scales.
  [[nodiscard]] bool isStored(ValueId value) const {
    const Node& node = graph_.definition(throughViews(graph_, value).base);
    return node.operands.empty() || (isPlain(node) && std::ranges::all_of(node.operands, [&](ValueId x) { return isStored(x); }));
  }

  /// Whether all lines of a matrix along an axis are the same: its columns for axis 0.
  [[nodiscard]] bool isOneLine(ValueId matrix, int64_t axis) const {
    const Node& node = graph_.definition(matrix);
    const bool spreads = std::holds_alternative<ViewLowering>(*node.op->lower) && graph_.shapeOf(node.operands[0]).rank() == 2;
    const Shape &shape = graph_.shapeOf(matrix), one = axis == 0 ? Shape{shape.extent(0), 1} : Shape{1, shape.extent(1)};
    return spreads && graph_.shapeOf(node.operands[0]) == one;
  }
  /// Whether a matrix is the product of a stored one and of a line along the axis.
  [[nodiscard]] bool isWeighted(ValueId matrix, int64_t axis) const {
    const Node& node = graph_.definition(matrix);
    return isPlain(node) && std::ranges::all_of(node.operands, [&](ValueId x) { return isOneLine(x, axis) || isStored(x); });
  }
  /// The axis of a matrix that the node sums over.
  [[nodiscard]] std::optional<int64_t> summedAxis(const Node& node) const {
    const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower);
    if (reduce == nullptr || graph_.shapeOf(node.operands[0]).rank() != 2 || reduce->keep_dims(node)) return std::nullopt;
    const std::vector<int64_t> axes = reduce->axes(graph_, node);
    return axes.size() == 1 ? std::optional(axes[0]) : std::nullopt;
  }
  /// Of a value beside such sums, whether all elements are the same.
  [[nodiscard]] bool isUniform(ValueId value) const {
    const Node& node = graph_.definition(value);
    if (const auto axis = summedAxis(node)) return isOneLine(node.operands[0], *axis);
    if (isShuffle(node)) return isUniform(node.operands[0]);
    if (isPlain(node)) return std::ranges::all_of(node.operands, [&](ValueId operand) { return isUniform(operand); });
    return graph_.shapeOf(throughViews(graph_, value).base).elementCount() == 1;
  }

  /// Whether the value is made of such sums and of what is stored, by few operations.
  [[nodiscard]] bool holdsSum(ValueId value) const {
    bool has_sum = false;
    int operations = 0;
    return isMade(value, has_sum, operations) && has_sum;
  }
  bool isMade(ValueId value, bool& has_sum, int& operations) const {
    if (isUniform(value) || isStored(value)) return true;
    const Node& node = graph_.definition(value);
    if (isShuffle(node)) return isMade(node.operands[0], has_sum, operations);
    if (const auto axis = summedAxis(node)) {
      has_sum = true;
      return graph_.shapeOf(node.operands[0]).elementCount() <= cost::kMostReordered && isWeighted(node.operands[0], *axis);
    }
    if (!isPlain(node) || std::get<ElementLowering>(*node.op->lower).transcendental) return false;
    ++operations;
    const auto isMadeToo = [&](ValueId operand) { return isMade(operand, has_sum, operations); };
    return operations <= kMostOperations && std::ranges::all_of(node.operands, isMadeToo);
  }

  ValueId reordered(ValueId value, Chain chain) {
    const Node& node = graph_.definition(value);
    if (isUniform(value)) return builder().reshape(rewriter_[value], shapeAfter(value, chain));
    if (isShuffle(node) && !isStored(value)) {
      chain.insert(chain.begin(), &node);
      return reordered(node.operands[0], chain);
    }
    if (const auto axis = summedAxis(node)) {
      const ValueId matrix = node.operands[0];
      std::vector<ValueId> operands;
      for (const ValueId operand : graph_.definition(matrix).operands) operands.push_back(inOrder(operand, chain, *axis));
      const ValueId made = remade(graph_.definition(matrix), operands);
      return builder().reshape(builder().make(*node.op->name, {made}, node.attributes), shapeAfter(value, chain));
    }
    if (isStored(value)) {
      ValueId made = rewriter_[value];
      for (const Node* view : chain) made = builder().make(*view->op->name, {made}, view->attributes);
      return made;
    }
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(reordered(operand, chain));
    return remade(node, operands);
  }

  /// A matrix with its lines along the axis in the order that the views give to their sums.
  ValueId inOrder(ValueId matrix, const Chain& chain, int64_t axis) {
    ValueId made = rewriter_[matrix];
    if (isOneLine(matrix, axis)) return made;
    if (axis == 1) made = builder().swapLastAxes(made);
    const Shape by_columns(builder().shapeOf(made));
    for (const Node* view : chain) {
      const std::vector<ValueId> operands{made};
      made = view->op->lift({builder(), *view, operands, {true}, by_columns.extent(0)});
    }
    made = builder().reshape(made, by_columns);
    return axis == 1 ? builder().swapLastAxes(made) : made;
  }

  [[nodiscard]] Shape shapeAfter(ValueId value, const Chain& chain) const {
    return graph_.shapeOf(chain.empty() ? value : chain.back()->results[0]);
  }
  ValueId remade(const Node& node, const std::vector<ValueId>& operands) {
    return builder().make(*node.op->name, operands, builder().addAttributes(graph_, node));
  }

  const Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

Graph reorderSums(const Graph& graph) { return Reorderer(graph).run(); }

}  // namespace lockstep::passes
