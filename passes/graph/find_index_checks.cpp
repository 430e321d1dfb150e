// SPDX-License-Identifier: Apache-2.0
// Which indices a step may get wrong, loops included: what a loop takes from outside is looked at there, what it computes it gives as one
// more stack.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ir/graph/loop.h"
#include "passes/graph/check_indices.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

using Range = std::optional<IntegerRange>;
using Ranges = std::vector<Range>;
using LeafRanges = std::map<std::string, Range, std::less<>>;

/// Every element of the result is one of operand 0.
bool keepsElements(const Graph& graph, const Node& node) {
  if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) return view->map(graph, node).guards.empty();
  return std::holds_alternative<AliasView>(*node.op->alias);
}

/// Which nodes an output depends on.
std::vector<bool> usedNodes(const Graph& graph) {
  std::vector<bool> used(graph.nodes.size(), false);
  for (const Output& output : graph.outputs) used[graph[output.value].node.index()] = true;
  const std::vector<NodeId>& nodes = graph.body().nodes;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!used[nodes[i].index()]) continue;
    for (ValueId operand : graph[nodes[i]].operands) used[graph[operand].node.index()] = true;
  }
  return used;
}

/// Where the elements of an index come from through views that keep all of them; an invalid value where a gradient uses it again.
ValueId sourceOf(const Graph& graph, ValueId index) {
  for (;;) {
    const Node& node = graph.definition(index);
    if (node.attributes.find("of_gradient") != nullptr) return {};
    if (!keepsElements(graph, node)) return index;
    if (graph.shapeOf(node.operands[0]).elementCount() != graph.shapeOf(index).elementCount()) return index;
    index = node.operands[0];
  }
}

/// What gradients that an output depends on use again.
std::set<ValueId> usedByGradients(const Graph& graph, const std::vector<bool>& used) {
  std::set<ValueId> sources;
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (used[id.index()] && node.attributes.find("of_gradient") != nullptr) sources.insert(sourceOf(graph, node.operands[0]));
  }
  return sources;
}

bool isInside(const Range& known, const IndexUse& wanted) { return known && known->lo >= 0 && known->hi < wanted.extent; }

/// Either of two.
Range either(const Range& a, const Range& b) { return a && b ? Range({std::min(a->lo, b->lo), std::max(a->hi, b->hi)}) : Range(); }

/// The number that a leaf of a body has among those of its kind.
std::optional<size_t> numberOf(std::string_view leaf, std::string (*nameOf)(size_t), size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (leaf == nameOf(i)) return i;
  }
  return std::nullopt;
}

class Analysis {
 public:
  /// `leaves`: what is known of leaves beside their types.
  Analysis(const Graph& graph, const LeafRanges& leaves) : in_(graph), used_(usedNodes(graph)) {
    findRanges(leaves);
    if (std::ranges::any_of(bodies_, [&](const auto& body) { return hasChecks(body.first); })) rewriter_.emplace(graph);
  }

  /// What is known of the graph's outputs.
  [[nodiscard]] Ranges outputs() const {
    Ranges known;
    for (const Output& output : in_.outputs) known.push_back(ranges_[output.value.index()]);
    return known;
  }

  IndexChecks run() {
    const std::set<ValueId> of_gradients = usedByGradients(in_, used_);
    for (NodeId id : in_.body().nodes) {
      const Node& node = in_[id];
      if (hasChecks(id)) {
        extend(node, bodies_.at(id));
        continue;
      }
      if (rewriter_) rewriter_->copy(node);
      if (node.op->index != nullptr) check(node, used_[id.index()], of_gradients);
    }
    if (!rewriter_) return {in_, std::move(checks_)};
    for (const Output& output : in_.outputs) rewriter_->copyOutput(output);
    return {rewriter_->take(), std::move(checks_)};
  }

 private:
  /// Whether it is a loop, and something in it has to be checked.
  [[nodiscard]] bool hasChecks(NodeId id) const {
    const auto body = bodies_.find(id);
    return body != bodies_.end() && used_[id.index()] && !body->second.checks.empty();
  }

  /// What is known of each integer value.
  void findRanges(const LeafRanges& leaves) {
    ranges_.resize(in_.values.size());
    for (NodeId id : in_.body().nodes) {
      const Node& node = in_[id];
      Ranges operands;
      for (ValueId operand : node.operands) operands.push_back(ranges_[operand.index()]);
      for (ValueId result : node.results) ranges_[result.index()] = graph::rangeOf(in_.typeOf(result).dtype);
      if (const std::string* name = leafName(node); name != nullptr && leaves.contains(*name)) {
        ranges_[node.results[0].index()] = leaves.find(*name)->second;
      } else if (std::holds_alternative<LoopLowering>(*node.op->lower)) {
        findRangesOfLoop(id, operands);
      } else if (keepsElements(in_, node)) {
        ranges_[node.results[0].index()] = operands[0];
      } else if (node.op->range != nullptr) {
        const Ranges results = node.op->range({in_, node, operands});
        for (size_t i = 0; i < results.size(); ++i) {
          if (!isFloat(in_.typeOf(node.results[i]).dtype)) ranges_[node.results[i].index()] = results[i];
        }
      }
    }
  }

  /// A carry is what it was at first or what the body makes of any number.
  void findRangesOfLoop(NodeId id, const Ranges& operands) {
    const LoopForm loop(in_[id]);
    LeafRanges leaves;
    for (size_t i = 0; i < loop.slices; ++i) leaves[sliceName(i)] = operands[loop.firstSlice() + i];
    for (size_t i = 0; i < loop.captures; ++i) leaves[captureName(i)] = operands[loop.firstCapture() + i];
    const Ranges any = Analysis(loop.body(), leaves).outputs();
    for (size_t i = 0; i < loop.carries; ++i) leaves[carryName(i)] = either(operands[i], any[i]);
    Analysis body(loop.body(), leaves);
    const Ranges outputs = body.outputs();
    for (size_t i = 0; i < loop.carries; ++i) ranges_[in_[id].results[i].index()] = leaves[carryName(i)];
    for (size_t i = loop.firstResult(); i < outputs.size(); ++i) ranges_[in_[id].results[i].index()] = outputs[i];
    bodies_.emplace(id, body.run());
  }

  void check(const Node& node, bool is_used, const std::set<ValueId>& of_gradients) {
    const IndexUse range = node.op->index(in_, node);
    const ValueId operand = node.operands[range.operand];
    // A loss may be there for its gradient alone.
    if (!is_used && !of_gradients.contains(sourceOf(in_, operand))) return;
    add(operand, range, *node.op->name, node.location == 0 ? Location{} : in_.locations[node.location - 1]);
  }

  /// A check of one of the values of this graph.
  void add(ValueId operand, IndexUse range, std::string_view op, const Location& where) {
    const ValueId index = sourceOf(in_, operand);
    if (range.ignored && !std::in_range<int32_t>(*range.ignored)) range.ignored.reset();  // no element is it
    if (!index.valid() || isInside(ranges_[operand.index()], range)) return;
    if (!known_.emplace(index, range.extent, range.ignored).second) return;
    const Node& maker = in_.definition(index);
    const std::string* name = leafName(maker);
    checks_.push_back({.index = rewriter_ ? (*rewriter_)[index] : index,
                       .range = range,
                       .op = op,
                       .where = where,
                       .shape = in_.shapeOf(index),
                       .leaf = name == nullptr ? "" : *name,
                       .is_given = leafKind(maker) == LeafKind::Input});
  }

  /// The loop with the indices that its body computes as further results. What the body got from outside is checked there.
  void extend(const Node& node, const IndexChecks& inside) {
    const LoopForm loop(node);
    Builder body(inside.graph);
    size_t outputs = body.graph().outputs.size();
    std::map<ValueId, size_t> exposed;  // by value of the body: the number of the result
    std::vector<std::pair<const IndexCheck*, size_t>> made_inside;
    for (const IndexCheck& one : inside.checks) {
      if (const auto slice = numberOf(one.leaf, sliceName, loop.slices)) {
        add(node.operands[loop.firstSlice() + *slice], one.range, one.op, one.where);
      } else if (const auto capture = numberOf(one.leaf, captureName, loop.captures)) {
        add(node.operands[loop.firstCapture() + *capture], one.range, one.op, one.where);
      } else if (const auto carry = numberOf(one.leaf, carryName, loop.carries)) {
        made_inside.emplace_back(&one, *carry);
      } else {
        const auto [place, is_new] = exposed.try_emplace(one.index, outputs);
        if (is_new) body.output(OutputKind::Result, resultName(outputs++ - loop.firstResult()), one.index);
        made_inside.emplace_back(&one, place->second);
      }
    }
    Builder& b = rewriter_->builder();
    Attributes attributes = node.attributes;
    attributes.set("body", NestedGraph(body.take()));
    b.setLocation(node.location);
    const std::vector<ValueId> made = b.makeAll("loop", rewriter_->mapped(node.operands), std::move(attributes));
    for (size_t i = 0; i < node.results.size(); ++i) {
      rewriter_->set(node.results[i], made[i]);
      b.name(made[i], in_[node.results[i]].name);
    }
    for (const auto& [one, result] : made_inside) {
      const bool is_carry = result < loop.carries;
      IndexCheck outside = *one;
      outside.index = is_carry ? rowsOf(b, made[result], loop.rowRead(0), loop.iterations) : made[result];
      outside.shape = b.shapeOf(outside.index);
      outside.leaf.clear();
      outside.is_given = false;
      checks_.push_back(std::move(outside));
    }
  }

  const Graph& in_;
  const std::vector<bool> used_;                                          ///< by node
  std::optional<Rewriter> rewriter_;                                      ///< where the graph changes, because a loop gives more
  Ranges ranges_;                                                         ///< by value
  std::map<NodeId, IndexChecks> bodies_;                                  ///< of loops
  std::set<std::tuple<ValueId, int64_t, std::optional<int64_t>>> known_;  ///< index, extent, what is ignored
  std::vector<IndexCheck> checks_;                                        ///< of values of the new graph
};

}  // namespace

IndexChecks findIndexChecks(const Graph& graph) { return Analysis(graph, {}).run(); }

}  // namespace lockstep::passes
