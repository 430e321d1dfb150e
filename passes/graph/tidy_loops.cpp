// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/tidy_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// What a value of a body depends on.
enum class Varies : uint8_t {
  Never,    ///< the same in all iterations
  BySlice,  ///< known in front of the loop for all of them
  ByCarry,  ///< made one after the other
};

bool isViewNode(const Node& node) { return std::holds_alternative<ViewLowering>(*node.op->lower); }
bool isProduct(const Node& node) { return std::holds_alternative<ContractLowering>(*node.op->lower) && node.op->lift != nullptr; }

class LoopTidier {
 public:
  LoopTidier(Builder& outer, const Node& node, std::vector<ValueId> operands, std::vector<bool> used)
      : outer_(outer), loop_(node), operands_(std::move(operands)), used_(std::move(used)), body_(loop_.body()) {
    const Graph& graph = body_.graph();
    for (size_t i = 0; i < loop_.carries; ++i) leaf(carryName(i), Varies::ByCarry, operands_[i]);
    for (size_t i = 0; i < loop_.held; ++i) leaf(heldName(i), Varies::ByCarry, operands_[loop_.carries + i]);
    for (size_t i = 0; i < loop_.slices; ++i) leaf(sliceName(i), Varies::BySlice, operands_[loop_.firstSlice() + i]);
    for (size_t i = 0; i < loop_.captures; ++i) leaf(captureName(i), Varies::Never, operands_[loop_.firstCapture() + i]);
    readers_.resize(graph.values.size(), 0);
    for (const NodeId id : graph.body().nodes) {
      Varies most = Varies::Never;
      for (const ValueId operand : graph[id].operands) {
        most = std::max(most, varies_.at(operand));
        ++readers_[operand.index()];
      }
      for (const ValueId result : graph[id].results) varies_.emplace(result, most);
    }
    for (const Output& output : graph.outputs) ++readers_[output.value.index()];
  }

  /// The results, by number of the old ones; invalid where nobody reads them.
  std::vector<ValueId> run() {
    keepNeeded();
    sinkProducts();
    hoist();
    return rebuild();
  }

 private:
  void leaf(const std::string& name, Varies varies, ValueId outside) {
    const ValueId value = findLeaf(body_.graph(), name);
    varies_[value] = varies;
    if (varies == Varies::Never) outside_[value] = outside;
    if (varies == Varies::BySlice) stacks_[value] = outside;
    leaves_.push_back(value);
  }
  [[nodiscard]] const Node& definition(ValueId value) const { return body_.graph().definition(value); }

  /// The results that are read, and the carries that these need.
  void keepNeeded() {
    const Graph& graph = body_.graph();
    std::vector<bool> live(graph.values.size(), false);
    needed_ = used_;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < needed_.size(); ++i) {
        if (needed_[i]) live[graph.outputs[i].value.index()] = true;
      }
      for (size_t i = graph.body().nodes.size(); i-- > 0;) {
        const Node& node = graph[graph.body().nodes[i]];
        if (std::ranges::none_of(node.results, [&](ValueId result) { return live[result.index()]; })) continue;
        for (const ValueId operand : node.operands) live[operand.index()] = true;
      }
      for (size_t i = 0; i < loop_.firstResult(); ++i) {
        if (!live[leaves_[i].index()] || needed_[i]) continue;
        needed_[i] = changed = true;
      }
    }
  }

  /// A result that is a product with what is the same for all iterations: they give what is multiplied.
  struct Sunk {
    size_t result = 0;  ///< of the old loop
    Node product;
    size_t varying = 0;  ///< which operand
  };
  void sinkProducts() {
    const Graph& graph = body_.graph();
    for (size_t i = loop_.firstResult(); i < needed_.size(); ++i) {
      if (!needed_[i]) continue;
      const ValueId value = graph.outputs[i].value;
      const Node& node = definition(value);
      if (!isProduct(node) || readers_[value.index()] != 1 || varies_.at(value) != Varies::ByCarry) continue;
      const bool first = varies_.at(node.operands[0]) != Varies::Never, second = varies_.at(node.operands[1]) != Varies::Never;
      const ValueId varying = node.operands[first ? 0 : 1];
      if (first == second || !canLift(node) || byteSize(body_.typeOf(varying).dtype) != 4) continue;
      sunk_.push_back({i, node, first ? size_t{0} : size_t{1}});
    }
    for (const Sunk& one : sunk_) body_.mutableGraph().outputs[one.result].value = one.product.operands[one.varying];
  }

  /// Whether the op has a form for all iterations at once; asked of a builder that is thrown away.
  [[nodiscard]] bool canLift(const Node& node) const {
    Builder trial;
    std::vector<ValueId> operands;
    std::vector<bool> stacked;
    for (const ValueId operand : node.operands) {
      stacked.push_back(varies_.at(operand) != Varies::Never);
      const TensorType& type = body_.typeOf(operand);
      const TensorType whole = stacked.back() ? stackType(type, loop_.iterations) : type;
      operands.push_back(trial.make(
          "input", {},
          {{"name", std::string(1, static_cast<char>('a' + operands.size()))}, {"dtype", whole.dtype}, {"shape", whole.shape.extents()}}));
    }
    return node.op->lift({trial, node, operands, stacked, loop_.iterations}).valid();
  }

  /// Whether the rows of its stack are views of slices, or products that were moved.
  [[nodiscard]] bool hasStack(ValueId value) const {
    if (stacks_.contains(value)) return true;
    const Node& node = definition(value);
    return isViewNode(node) && node.op->lift != nullptr && node.operands.size() == 1 && hasStack(node.operands[0]);
  }
  ValueId stackOf(ValueId value) {
    if (const auto found = stacks_.find(value); found != stacks_.end()) return found->second;
    const Node& node = definition(value);
    const std::vector<ValueId> operands{stackOf(node.operands[0])};
    return stacks_[value] = node.op->lift({outer_, node, operands, {true}, loop_.iterations});
  }

  /// A value that is the same in all iterations, outside of the loop.
  ValueId outside(ValueId value) {
    if (const auto found = outside_.find(value); found != outside_.end()) return found->second;
    const Graph& graph = body_.graph();
    const Node node = definition(value);
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) operands.push_back(outside(operand));
    if (node.location != 0) outer_.setLocation(outer_.addLocation(graph, node));
    const std::vector<ValueId> made = outer_.makeAll(*node.op->name, std::move(operands), outer_.addAttributes(graph, node));
    for (size_t i = 0; i < made.size(); ++i) outside_[node.results[i]] = made[i];
    return outside_.at(value);
  }

  static bool isElementwise(const Node& node) { return std::holds_alternative<ElementLowering>(*node.op->lower); }
  /// Numbers that a kernel makes without reading anything.
  static bool isGenerated(const Node& node) {
    return node.operands.empty() && (leafKind(node) == LeafKind::None || leafKind(node) == LeafKind::Constant);
  }
  /// Adds what such ops and views make a value from.
  void collectSources(ValueId value, std::set<ValueId>& seen, uint64_t& bytes) const {
    if (!seen.insert(value).second) return;
    const Node& node = definition(value);
    const bool is_made = leafKind(node) == LeafKind::None && (isElementwise(node) || isViewNode(node));
    if (!is_made && !isGenerated(node)) bytes += body_.typeOf(value).byteSize();
    if (!is_made) return;
    for (const ValueId operand : node.operands) collectSources(operand, seen, bytes);
  }
  /// Whether it is made element by element from a tensor of fewer bits, 4 at least, as weights are that are stored so. Such a value is made
  /// anew in each iteration: its wide copy would cost memory, and more time to read than the widening takes. What is made from less, such
  /// as a table of angles, is kept.
  [[nodiscard]] bool isWidened(ValueId value) const {
    constexpr uint64_t kMostTimesWider = 8;
    if (!isElementwise(definition(value))) return false;
    std::set<ValueId> seen;
    uint64_t sources = 0;
    collectSources(value, seen, sources);
    const uint64_t bytes = body_.typeOf(value).byteSize();
    return bytes > sources && bytes <= kMostTimesWider * sources;
  }

  void hoist() {
    for (const NodeId id : body_.graph().body().nodes) {
      const Node node = body_.graph()[id];
      if (leafKind(node) != LeafKind::None || isViewNode(node) || node.results.size() != 1) continue;
      const ValueId value = node.results[0];
      if (varies_.at(value) == Varies::Never) {
        if (isWidened(value)) continue;
        replace_[value] = {Varies::Never, outside(value)};
      } else if (varies_.at(value) == Varies::BySlice && isProduct(node) && canLift(node)) {
        std::vector<ValueId> operands;
        std::vector<bool> stacked;
        bool can = true;
        for (const ValueId operand : node.operands) {
          stacked.push_back(varies_.at(operand) != Varies::Never);
          can = can && (!stacked.back() || hasStack(operand));
        }
        if (!can) continue;
        for (size_t i = 0; i < node.operands.size(); ++i)
          operands.push_back(stacked[i] ? stackOf(node.operands[i]) : outside(node.operands[i]));
        stacks_[value] = node.op->lift({outer_, node, operands, stacked, loop_.iterations});
        replace_[value] = {Varies::BySlice, stacks_[value]};
      }
    }
  }

  struct Replacement {
    Varies by = Varies::Never;
    ValueId outside;
  };

  /// The carry that a result is the next value of, whose stack has it already.
  [[nodiscard]] std::optional<size_t> carryOf(size_t result) const {
    const std::vector<Output>& outputs = body_.graph().outputs;
    for (size_t i = 0; result >= loop_.firstResult() && i < loop_.carries; ++i) {
      if (needed_[i] && outputs[i].value == outputs[result].value) return i;
    }
    return std::nullopt;
  }

  std::vector<ValueId> rebuild() {
    // What the kept outputs need, with leaves for what moved out.
    const Graph& graph = body_.graph();
    Builder b;
    b.mutableGraph().constants = graph.constants;
    b.mutableGraph().locations = graph.locations;
    std::map<ValueId, ValueId> now;
    LoopOperands operands;
    const auto input = [&](const std::string& name, const TensorType& type) {
      return b.make("input", {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
    };
    for (size_t i = 0; i < loop_.carries; ++i) {
      if (!needed_[i]) continue;
      now[leaves_[i]] = input(carryName(operands.carries.size()), graph.typeOf(leaves_[i]));
      operands.carries.push_back(operands_[i]);
    }
    for (size_t i = loop_.carries; i < loop_.firstResult(); ++i) {
      if (!needed_[i]) continue;
      const TensorType& type = graph.typeOf(leaves_[i]);
      now[leaves_[i]] = b.make(
          "state", {}, {{"name", heldName(operands.held.size())}, {"dtype", type.dtype}, {"shape", type.shape.extents()}, {"init", 0.0}});
      operands.held.push_back(operands_[i]);
    }
    std::vector<bool> live(graph.values.size(), false);
    for (size_t i = 0; i < needed_.size(); ++i) {
      if (needed_[i]) live[graph.outputs[i].value.index()] = true;
    }
    std::vector<NodeId> nodes;
    for (size_t i = graph.body().nodes.size(); i-- > 0;) {
      const NodeId id = graph.body().nodes[i];
      const Node& node = graph[id];
      if (std::ranges::none_of(node.results, [&](ValueId result) { return live[result.index()]; })) continue;
      nodes.push_back(id);
      if (replace_.contains(node.results[0])) continue;
      for (const ValueId operand : node.operands) live[operand.index()] = true;
    }
    for (size_t n = nodes.size(); n-- > 0;) {
      const Node& node = graph[nodes[n]];
      const ValueId value = node.results[0];
      if (now.contains(value)) continue;
      const auto replaced = replace_.find(value);
      const bool is_leaf = leafName(node) != nullptr;
      if (replaced != replace_.end() || is_leaf) {
        const bool stack = replaced != replace_.end() ? replaced->second.by == Varies::BySlice : stacks_.contains(value);
        const ValueId from = replaced != replace_.end() ? replaced->second.outside : stack ? stacks_.at(value) : outside_.at(value);
        std::vector<ValueId>& list = stack ? operands.slices : operands.captures;
        now[value] = input(stack ? sliceName(list.size()) : captureName(list.size()), graph.typeOf(value));
        list.push_back(from);
        continue;
      }
      std::vector<ValueId> inner;
      for (const ValueId operand : node.operands) inner.push_back(now.at(operand));
      b.setLocation(node.location);
      const std::vector<ValueId> made = b.makeAll(*node.op->name, std::move(inner), node.attributes);
      for (size_t i = 0; i < made.size(); ++i) {
        now[node.results[i]] = made[i];
        b.name(made[i], graph[node.results[i]].name);
      }
    }
    std::vector<ValueId> results(needed_.size());
    std::map<ValueId, size_t> stacked;  // by value of the old body: the result of the new loop
    size_t carried = 0, held = 0, count = 0;
    for (size_t i = 0; i < loop_.carries; ++i) {
      if (needed_[i]) b.output(OutputKind::Result, carryName(carried++), now.at(graph.outputs[i].value));
    }
    for (size_t i = loop_.carries; i < loop_.firstResult(); ++i) {
      if (needed_[i]) b.output(OutputKind::NextState, heldName(held++), now.at(graph.outputs[i].value));
    }
    carried += held;
    for (size_t i = loop_.firstResult(); i < needed_.size(); ++i) {
      if (!needed_[i] || carryOf(i) || !stacked.emplace(graph.outputs[i].value, carried + count).second) continue;
      b.output(OutputKind::Result, resultName(count++), now.at(graph.outputs[i].value));
    }
    if (carried + count == 0) return results;
    outer_.setLocation(location_);
    const std::vector<ValueId> made = makeLoop(outer_, operands, loop_.iterations, loop_.reverse, b.take());
    size_t carry = 0;
    for (size_t i = 0; i < needed_.size(); ++i) {
      if (!needed_[i]) continue;
      if (const std::optional<size_t> same = carryOf(i)) {
        results[i] = rowsOf(outer_, results[*same], loop_.rowWritten(0), loop_.iterations);
      } else {
        results[i] = i < loop_.firstResult() ? made[carry++] : made[stacked.at(graph.outputs[i].value)];
      }
    }
    for (const Sunk& one : sunk_) {
      std::vector<ValueId> factors;
      std::vector<bool> is_stack;
      for (size_t i = 0; i < one.product.operands.size(); ++i) {
        is_stack.push_back(i == one.varying);
        factors.push_back(i == one.varying ? results[one.result] : outside(one.product.operands[i]));
      }
      results[one.result] = one.product.op->lift({outer_, one.product, factors, is_stack, loop_.iterations});
    }
    return results;
  }

 public:
  void setLocation(uint32_t location) { location_ = location; }

 private:
  Builder& outer_;
  LoopForm loop_;
  std::vector<ValueId> operands_;
  std::vector<bool> used_, needed_;  // by result
  Builder body_;
  uint32_t location_ = 0;
  std::vector<ValueId> leaves_;  // of the body, by operand
  std::map<ValueId, Varies> varies_;
  std::vector<uint32_t> readers_;
  std::map<ValueId, ValueId> outside_;  // by value of the body that is the same in all iterations
  std::map<ValueId, ValueId> stacks_;   // by value of the body: all of its values
  std::map<ValueId, Replacement> replace_;
  std::vector<Sunk> sunk_;
};

}  // namespace

Graph tidyLoops(const Graph& graph) {
  const auto isLoop = [&](NodeId id) { return std::holds_alternative<LoopLowering>(*graph[id].op->lower); };
  if (std::ranges::none_of(graph.body().nodes, isLoop)) return graph;
  std::vector<bool> used(graph.values.size(), false);
  for (const NodeId id : graph.body().nodes) {
    for (const ValueId operand : graph[id].operands) used[operand.index()] = true;
  }
  for (const Output& output : graph.outputs) used[output.value.index()] = true;
  Rewriter rewriter(graph);
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (!isLoop(id)) {
      rewriter.copy(node);
      continue;
    }
    std::vector<bool> wanted;
    for (const ValueId result : node.results) wanted.push_back(used[result.index()]);
    LoopTidier tidier(rewriter.builder(), node, rewriter.mapped(node.operands), wanted);
    tidier.setLocation(node.location);
    rewriter.builder().setLocation(node.location);
    const std::vector<ValueId> results = tidier.run();
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].valid()) rewriter.set(node.results[i], results[i]);
    }
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
