// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/simplify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "ir/graph/op_def.h"
#include "ir/graph/text.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/tidy_loops.h"

namespace lockstep::passes {

using namespace graph;

namespace {

// Larger results are not evaluated at compile time, except where the result is plainly uniform.
constexpr int64_t kFoldLimit = 4096;

struct State {
  const Graph& in;
  Rewriter rewriter;
  std::map<std::pair<std::string, std::vector<ValueId>>, std::vector<NodeId>> known;  // of the new graph, for common subexpressions

  explicit State(const Graph& graph) : in(graph), rewriter(graph) {}
  Builder& b() { return rewriter.builder(); }
  [[nodiscard]] const Graph& out() { return b().graph(); }
  [[nodiscard]] std::optional<double> constantOf(ValueId value) {
    const Node& node = out().definition(value);
    if (leafKind(node) != LeafKind::Constant) return std::nullopt;
    return node.attributes.get<double>("value");
  }
};

using Operands = std::vector<ValueId>;
/// The value that replaces `node` (of the old graph, with operands of the new one); nullopt when the rule does not apply.
using RuleFn = std::optional<ValueId> (*)(State&, const Node&, const Operands&);

/// An affine view that moves nothing, such as a reshape to the same shape or a permutation of axes of extent 1 that keeps the type.
std::optional<ValueId> identityView(State& s, const Node& node, const Operands& operands) {
  const auto* view = std::get_if<ViewLowering>(&*node.op->lower);
  if (view == nullptr || s.b().typeOf(operands[0]) != s.in.typeOf(node.results[0])) return std::nullopt;
  IndexMap map = view->map(s.in, node);
  if (!map.guards.empty()) return std::nullopt;
  const Shape& shape = s.b().shapeOf(operands[0]);
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape.extent(axis) != 1 && map.source[axis] != axisExpr(static_cast<int32_t>(axis))) return std::nullopt;
  }
  return operands[0];
}

std::optional<ValueId> viewOfConstant(State& s, const Node& node, const Operands& operands) {
  const auto* view = std::get_if<ViewLowering>(&*node.op->lower);
  if (view == nullptr) return std::nullopt;
  std::optional<double> value = s.constantOf(operands[0]);
  if (!value || !view->map(s.in, node).guards.empty()) return std::nullopt;
  return s.b().constant(*value, s.in.typeOf(node.results[0]));
}

std::optional<ValueId> uniformResult(State& s, const Node& node, const Operands& operands) {
  bool computes = std::holds_alternative<ElementLowering>(*node.op->lower) || std::holds_alternative<ReduceLowering>(*node.op->lower);
  if (!computes || operands.empty() || node.results.size() != 1) return std::nullopt;
  const TensorType& type = s.in.typeOf(node.results[0]);
  std::vector<Tensor> tensors;
  int64_t size = type.shape.elementCount();
  for (ValueId operand : operands) {
    std::optional<double> value = s.constantOf(operand);
    if (!value) return std::nullopt;
    size = std::max(size, s.b().shapeOf(operand).elementCount());
    if (size > kFoldLimit) return std::nullopt;
    tensors.push_back({s.b().typeOf(operand), std::vector<double>(static_cast<size_t>(s.b().shapeOf(operand).elementCount()), *value)});
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  std::vector<TensorType> types{type};
  std::vector<double> data = (*node.op->evaluate)({s.in, node, pointers, types}).front().data;
  if (std::any_of(data.begin(), data.end(), [&](double d) { return d != data.front(); })) return std::nullopt;
  double value = type.dtype == DType::F32 ? static_cast<double>(static_cast<float>(data.front())) : data.front();
  if (!std::isfinite(value)) return std::nullopt;
  return s.b().constant(value, type);
}

/// x op c = x for the neutral element on the right (and on the left where the op commutes).
std::optional<ValueId> neutralElement(State& s, const Node& node, const Operands& operands) {
  const Algebra& law = node.op->algebra;
  if (!law.neutral) return std::nullopt;
  if (s.constantOf(operands[1]) == law.neutral) return operands[0];
  if (law.commutes && s.constantOf(operands[0]) == law.neutral) return operands[1];
  return std::nullopt;
}

/// f(f(x)) = x.
std::optional<ValueId> involutionTwice(State& s, const Node& node, const Operands& operands) {
  if (!node.op->algebra.involution) return std::nullopt;
  const Node& inner = s.out().definition(operands[0]);
  return inner.op == node.op ? std::optional(inner.operands[0]) : std::nullopt;
}

std::optional<ValueId> reductionOfOne(State& s, const Node& node, const Operands& operands) {
  const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower);
  if (reduce == nullptr) return std::nullopt;
  const Shape& shape = s.b().shapeOf(operands[0]);
  for (int64_t axis : reduce->axes(s.in, node)) {
    if (shape.extent(static_cast<size_t>(axis)) != 1) return std::nullopt;
  }
  return s.b().reshape(operands[0], s.in.shapeOf(node.results[0]));
}

/// f(f(x)) = f(x), where the outer one says everything.
std::optional<ValueId> lastOfTwo(State& s, const Node& node, const Operands& operands) {
  if (!node.op->algebra.last_counts) return std::nullopt;
  const Node& inner = s.out().definition(operands[0]);
  if (inner.op != node.op) return std::nullopt;
  const ValueId source = inner.operands[0];
  if (s.b().typeOf(source) == s.in.typeOf(node.results[0])) return source;
  return s.b().make(*node.op->name, {source}, node.attributes);
}

/// What a padding with zeros leaves as it is, and how many elements come before it; nullopt unless it lies in one piece.
std::optional<std::pair<ValueId, int64_t>> insideOfPadding(State& s, ValueId value) {
  const Node* node = &s.out().definition(value);
  if (*node->op->name == "reshape") node = &s.out().definition(node->operands[0]);
  if (*node->op->name != "pad" || node->attributes.get<double>("value") != 0) return std::nullopt;
  const ValueId source = node->operands[0];
  const std::vector<int64_t> extents = s.b().shapeOf(source).extents();
  const auto axis = extents.begin() + node->attributes.get<int64_t>("axis");
  if (std::any_of(extents.begin(), axis, [](int64_t extent) { return extent != 1; })) return std::nullopt;
  return std::pair(source, std::accumulate(axis + 1, extents.end(), node->attributes.get<int64_t>("before"), std::multiplies<>()));
}

/// pack(pad(x)) = pack(x) at a later offset: the rest of a pack is 0 anyway. So the gradient of a slice of a parameter needs no copy.
std::optional<ValueId> packOfPadded(State& s, const Node& node, const Operands& operands) {
  if (!std::holds_alternative<AliasPack>(*node.op->alias)) return std::nullopt;
  Operands parts = operands;
  auto offsets = node.attributes.get<std::vector<int64_t>>("offsets");
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto inside = insideOfPadding(s, parts[i]);
    if (!inside || inside->second % kParameterAlignment != 0) continue;
    parts[i] = inside->first;
    offsets[i] += inside->second;
  }
  if (parts == operands) return std::nullopt;
  const ValueId pack = s.b().make(*node.op->name, parts, {{"offsets", offsets}, {"total", node.attributes.get<int64_t>("total")}});
  s.b().name(pack, s.in[node.results[0]].name);
  return pack;
}

struct Rule {
  std::string_view name;
  RuleFn apply;
};
constexpr std::array kRules{
    Rule{"identity_view", identityView},     Rule{"view_of_constant", viewOfConstant},  Rule{"uniform_result", uniformResult},
    Rule{"neutral_element", neutralElement}, Rule{"involution_twice", involutionTwice}, Rule{"reduction_of_one", reductionOfOne},
    Rule{"last_of_two", lastOfTwo},          Rule{"pack_of_padded", packOfPadded}};

std::optional<ValueId> applyRules(State& s, const Node& node, const Operands& operands) {
  for (const Rule& rule : kRules) {
    if (std::optional<ValueId> replacement = rule.apply(s, node, operands)) return replacement;
  }
  return std::nullopt;
}

/// In a key; equality looks at the constant itself.
std::string withoutConstant(ConstantId) { return {}; }

/// A node of the new graph that computes the same.
const Node* equalNode(State& s, const Node& node, const Operands& operands) {
  // With the attributes in the key: a model has thousands of parameters, and of slices of one state.
  std::vector<NodeId>& same = s.known[{fmt::format("{} {}", *node.op->name, printAttributes(node.attributes, withoutConstant)), operands}];
  for (NodeId id : same) {
    const Node& candidate = s.out()[id];
    bool types = std::equal(candidate.results.begin(), candidate.results.end(), node.results.begin(), node.results.end(),
                            [&](ValueId a, ValueId b) { return s.b().typeOf(a) == s.in.typeOf(b); });
    if (types && candidate.attributes == node.attributes) return &candidate;
  }
  same.emplace_back(s.out().nodes.size());  // the copy that the caller makes next
  return nullptr;
}

Graph round(const Graph& graph) {
  State s(graph);
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    Operands operands = s.rewriter.mapped(node.operands);
    s.b().setLocation(node.location);
    if (std::optional<ValueId> replacement = applyRules(s, node, operands)) {
      s.rewriter.set(node.results[0], *replacement);
    } else if (const Node* same = equalNode(s, node, operands)) {
      for (size_t i = 0; i < node.results.size(); ++i) s.rewriter.set(node.results[i], same->results[i]);
    } else {
      s.rewriter.copy(node);
    }
  }
  for (const Output& output : graph.outputs) s.rewriter.copyOutput(output);
  return removeDead(s.rewriter.take());
}

}  // namespace

Result<Graph> simplify(const Graph& graph) {
  Graph current = removeDead(tidyLoops(removeDead(graph)));
  // Each round either shrinks the graph or is the last; replacing a node by an equally large one happens a bounded number of times.
  for (int i = 0; i < 8; ++i) {
    Graph next = round(current);
    bool done = next.nodes.size() == current.nodes.size() && next.values == current.values && next.nodes == current.nodes;
    current = std::move(next);
    if (done) break;
  }
  return current;
}

}  // namespace lockstep::passes
