// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/autocast.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool isView(const Node& node) { return std::holds_alternative<ViewLowering>(*node.op->lower); }

/// Elements that have to be read for a value.
int64_t elementsBehind(const Graph& graph, ValueId value) {
  while (isView(graph.definition(value))) value = graph.definition(value).operands[0];
  return leafKind(graph.definition(value)) == LeafKind::Constant ? 0 : graph.shapeOf(value).elementCount();
}

class Rounding {
 public:
  Rounding(const Graph& graph, DType low)
      : in_(graph),
        low_(low),
        rewriter_(graph),
        users_(graph.values.size()),
        output_(graph.values.size(), false),
        exempt_(graph.values.size(), false),
        due_(graph.values.size(), false),
        wide_(graph.values.size()),
        rounded_(graph.values.size()) {
    for (NodeId id : graph.body().nodes) {
      for (ValueId operand : graph[id].operands) users_[operand.index()].push_back(id);
    }
    for (const Output& output : graph.outputs) output_[output.value.index()] = true;
  }

  Graph run() {
    for (NodeId id : in_.body().nodes) visit(in_[id]);
    for (const Output& output : in_.outputs) rewriter_.copyOutput(output);
    return rewriter_.take();
  }

 private:
  Builder& b() { return rewriter_.builder(); }

  void visit(const Node& node) {
    const MixedRole role = node.op->mixed;
    if (role == MixedRole::Exempt) return leaveWide(node);
    if (role == MixedRole::Product) {
      makeProduct(node);
    } else {
      rewriter_.copy(node);
    }
    for (ValueId result : node.results) {
      if (due_[result.index()]) roundResult(result);
    }
  }

  void leaveWide(const Node& node) {
    const ValueId operand = node.operands[0], wide = wide_[operand.index()];
    rewriter_.set(node.results[0], wide.valid() ? wide : rewriter_[operand]);
    exempt_[node.results[0].index()] = true;
  }

  void makeProduct(const Node& node) {
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(operands.size() < node.op->factors ? rounded(operand) : rewriter_[operand]);
    Attributes attributes = node.attributes;
    if (std::ranges::find(*node.op->attributes, kLowAttribute, &AttributeDef::name) != node.op->attributes->end())
      attributes.set(std::string(kLowAttribute), low_);
    b().setLocation(node.location);
    const std::vector<ValueId> results = b().makeAll(*node.op->name, std::move(operands), std::move(attributes));
    for (size_t i = 0; i < results.size(); ++i) {
      rewriter_.set(node.results[i], results[i]);
      b().name(results[i], in_[node.results[i]].name);
    }
    due_[endOf(node.results[0]).index()] = true;
  }

  /// The last value of the chain that a kernel of the product can make of its result before it is stored. Outputs in between (captures)
  /// change nothing, so that a program with them computes the same.
  [[nodiscard]] ValueId endOf(ValueId value) const {
    for (;;) {
      const std::vector<NodeId>& users = users_[value.index()];
      if (users.size() != 1 || !follows(in_[users.front()], value)) return value;
      value = in_[users.front()].results[0];
    }
  }
  [[nodiscard]] bool follows(const Node& node, ValueId value) const {
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    if (element == nullptr || element->transcendental || element->scalar_only || in_.typeOf(node.results[0]) != in_.typeOf(value))
      return false;
    const int64_t elements = in_.shapeOf(value).elementCount();
    return std::ranges::all_of(
        node.operands, [&](ValueId operand) { return operand == value || cost::kSmallerBy * elementsBehind(in_, operand) <= elements; });
  }

  void roundResult(ValueId value) {
    const auto& users = users_[value.index()];
    const bool read =
        output_[value.index()] || std::ranges::any_of(users, [&](NodeId id) { return in_[id].op->mixed != MixedRole::Exempt; });
    if (!read) return;
    const ValueId wide = wide_[value.index()] = rewriter_[value];
    rounded_[value.index()] = roundTrip(wide, true);
    rewriter_.set(value, rounded_[value.index()]);
  }

  /// The new value of an old one, rounded.
  ValueId rounded(ValueId value) {
    // Views move rounded values: rounding comes before them, where their operand is not larger.
    std::vector<ValueId> views;
    while (!settled(value) && isView(in_.definition(value))) {
      const ValueId source = in_.definition(value).operands[0];
      if (in_.shapeOf(source).elementCount() > in_.shapeOf(value).elementCount()) break;
      views.push_back(value);
      value = source;
    }
    if (!settled(value)) roundOperand(value);
    while (!views.empty()) {
      const ValueId source = value;
      value = views.back();
      views.pop_back();
      rounded_[value.index()] = viewOf(value, source);
    }
    return rounded_[value.index()].valid() ? rounded_[value.index()] : rewriter_[value];
  }

  /// Whether there is nothing to make: it is rounded already, or must not be.
  [[nodiscard]] bool settled(ValueId value) const {
    return rounded_[value.index()].valid() || exempt_[value.index()] || in_.typeOf(value).dtype != DType::F32 || fitsLow(value);
  }
  /// Whether every element is one of `low` because it comes from such a type.
  [[nodiscard]] bool fitsLow(ValueId value) const {
    const Node& node = in_.definition(value);
    if (!std::holds_alternative<ElementLowering>(*node.op->lower) || node.operands.size() != 1) return false;
    const DType from = in_.typeOf(node.operands[0]).dtype;
    return from == low_ || from == DType::Bool || byteSize(from) == 1;
  }

  void roundOperand(ValueId value) {
    const Node& maker = in_.definition(value);
    b().setLocation(maker.location);
    rounded_[value.index()] = roundTrip(rewriter_[value], leafKind(maker) != LeafKind::Parameter);
  }

  ValueId viewOf(ValueId value, ValueId source) {
    const ValueId now = rounded_[source.index()];
    if (!now.valid() || now == rewriter_[source]) return rewriter_[value];
    const Node& view = in_.definition(value);
    b().setLocation(view.location);
    return b().make(*view.op->name, {now}, view.attributes);
  }

  ValueId roundTrip(ValueId wide, bool rounds_gradient) {
    const ValueId low = b().make("cast", {wide}, {{"dtype", low_}});
    Attributes attributes{{"dtype", DType::F32}};
    if (rounds_gradient) attributes.set("rounds_gradient", true);
    return b().make("cast", {low}, std::move(attributes));
  }

  const Graph& in_;
  DType low_;
  Rewriter rewriter_;
  std::vector<std::vector<NodeId>> users_;  ///< by old value, as all below
  std::vector<bool> output_;
  std::vector<bool> exempt_;      ///< made by keep_f32
  std::vector<bool> due_;         ///< to be rounded when it is made
  std::vector<ValueId> wide_;     ///< what was rounded when it was made
  std::vector<ValueId> rounded_;  ///< what products read
};

}  // namespace

Graph autocast(const Graph& graph, DType low) { return Rounding(graph, low).run(); }

namespace {

/// Whether the node widens what autocast has rounded.
bool widensRounded(const Graph& graph, const Node& node) {
  if (node.operands.size() != 1 || graph.typeOf(node.results[0]).dtype != DType::F32) return false;
  const DType low = graph.typeOf(node.operands[0]).dtype;
  return isFloat(low) && isPacked(low) && node.attributes.find("rounds_gradient") != nullptr;
}

}  // namespace

std::vector<ValueId> roundedCopies(const Graph& graph) {
  std::vector<ValueId> copies(graph.values.size());
  for (NodeId id : graph.body().nodes) {
    const Node& wide = graph[id];
    if (!widensRounded(graph, wide)) continue;
    const Node& narrow = graph.definition(wide.operands[0]);
    if (narrow.op == wide.op) copies[narrow.operands[0].index()] = wide.results[0];
  }
  return copies;
}

DType roundedType(const Graph& graph, const Node& product) {
  for (ValueId operand : product.operands) {
    while (isView(graph.definition(operand))) operand = graph.definition(operand).operands[0];
    const Node& maker = graph.definition(operand);
    if (widensRounded(graph, maker)) return graph.typeOf(maker.operands[0]).dtype;
  }
  return DType::F32;
}

}  // namespace lockstep::passes
