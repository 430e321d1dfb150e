// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/store_operands.h"

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <tuple>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr size_t kLongestChain = 4;  // operations that are made again for later products
constexpr size_t kNear = 8;          // products between two that share what is stored
constexpr int64_t kRepeats = 2;      // tiles that would compute an operand again

bool isElement(const Graph& graph, ValueId value) {
  const auto* element = std::get_if<ElementLowering>(&*graph.definition(value).op->lower);
  return element != nullptr && !element->transcendental && !element->scalar_only && !element->cheap;
}

/// An operand of a large product that is computed, seen through views.
struct Use {
  NodeId product;
  size_t operand = 0;
  size_t number = 0;  ///< of the product, among all large ones
};

class OperandKeeper {
 public:
  OperandKeeper(const Graph& graph, const program::DeviceProfile& profile)
      : in_(graph), rewriter_(graph), least_(cost::kLeastMatrixProducts * profile.parallel_units) {}

  Graph run() {
    findUses();
    for (const NodeId id : in_.body().nodes) {
      if (!replaced_.contains(id)) {
        rewriter_.copy(in_[id]);
      } else {
        copyProduct(id);
      }
    }
    for (const Output& output : in_.outputs) rewriter_.copyOutput(output);
    return removeDead(rewriter_.take());
  }

 private:
  Builder& b() { return rewriter_.builder(); }

  void findUses() {
    std::map<ValueId, std::vector<Use>> uses;
    std::vector<size_t> readers(in_.values.size(), 0);
    size_t number = 0;
    for (const NodeId id : in_.body().nodes) {
      const Node& node = in_[id];
      for (const ValueId operand : node.operands) ++readers[operand.index()];
      const auto* contract = std::get_if<ContractLowering>(&*node.op->lower);
      if (contract == nullptr) continue;
      const ContractShape shape = contract->shape(in_, node);
      if (shape.batch * shape.m * shape.n * shape.k < least_) continue;
      ++number;
      const int64_t tile = cost::kSplitTiles.front().m;
      for (size_t operand = 0; operand < 2; ++operand) {
        if ((operand == 0 ? shape.n : shape.m) < kRepeats * tile) continue;
        const ValueId base = throughViews(in_, node.operands[operand]).base;
        if (isElement(in_, base) && in_.typeOf(base).dtype == DType::F32 && !widens(in_, in_.definition(base)))
          uses[base].push_back({id, operand, number});
      }
    }
    for (const Output& output : in_.outputs) ++readers[output.value.index()];
    std::set<std::pair<NodeId, size_t>> taken;
    for (const auto& [value, found] : uses) {
      for (const Use& use : found) taken.emplace(use.product, use.operand);
    }
    const std::vector<bool> only = readByProducts(taken);
    for (const auto& [value, found] : uses) {
      const std::optional<Chain> chain = chainOf(value, readers);
      if (!chain || !only[value.index()]) continue;
      chains_[value] = *chain;
      size_t group = 0, last = found.front().number;
      for (const Use& use : found) {
        if (use.number > last + kNear) ++group;
        last = use.number;
        replaced_[use.product].emplace_back(use.operand, value, group);
      }
    }
  }

  /// What makes a value out of others that are read elsewhere, too, or are small.
  struct Chain {
    std::vector<NodeId> nodes;  ///< in their order
    std::set<ValueId> large;    ///< of the size of the value
  };
  [[nodiscard]] std::optional<Chain> chainOf(ValueId value, const std::vector<size_t>& readers) const {
    Chain chain;
    const int64_t elements = in_.shapeOf(value).elementCount();
    const auto collect = [&](const auto& self, ValueId made) -> bool {
      chain.nodes.push_back(in_[made].node);
      if (chain.nodes.size() > kLongestChain) return false;
      return std::ranges::all_of(in_.definition(made).operands, [&](ValueId operand) {
        if (leastSeen(in_, operand) < elements) return true;
        const ValueId base = throughViews(in_, operand).base;
        if (base == operand && readers[base.index()] == 1 && isElement(in_, base)) return self(self, base);
        chain.large.insert(operand);
        return true;
      });
    };
    if (!collect(collect, value) || chain.large.size() != 1) return std::nullopt;
    std::ranges::sort(chain.nodes);
    return chain;
  }

  /// By value, whether only large products read it, through views.
  [[nodiscard]] std::vector<bool> readByProducts(const std::set<std::pair<NodeId, size_t>>& taken) const {
    std::vector<bool> only(in_.values.size(), true);
    for (const Output& output : in_.outputs) only[output.value.index()] = false;
    for (const NodeId id : std::views::reverse(in_.body().nodes)) {
      const Node& node = in_[id];
      const bool is_view = std::holds_alternative<ViewLowering>(*node.op->lower) && only[node.results[0].index()];
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (!is_view && !taken.contains({id, i})) only[node.operands[i].index()] = false;
      }
    }
    return only;
  }

  void copyProduct(NodeId id) {
    const Node& node = in_[id];
    std::vector<ValueId> operands = rewriter_.mapped(node.operands);
    for (const auto& [operand, value, group] : replaced_.at(id)) {
      // Not a view of it, which would have to be stored.
      const ValueId other = rewriter_[throughViews(in_, node.operands[1 - operand]).base];
      b().setLocation(in_.definition(value).location);
      operands[operand] = seenThrough(node.operands[operand], value, stored(value, group, other));
    }
    b().setLocation(node.location);
    const ValueId product = b().make(*node.op->name, operands, node.attributes);
    rewriter_.set(node.results[0], product);
    b().name(product, in_[node.results[0]].name);
  }

  /// The value for the products of a group; `after` is there when the first of them is about to run.
  ValueId stored(ValueId value, size_t group, ValueId after) {
    const auto [known, is_new] = stored_.try_emplace({value, group});
    if (!is_new) return known->second;
    if (group == 0) return known->second = b().make("barrier", {rewriter_[value]});
    const Chain& chain = chains_.at(value);
    std::map<ValueId, ValueId> again;
    for (const ValueId large : chain.large) again[large] = b().make("barrier", {rewriter_[large], after});
    for (const NodeId id : chain.nodes) {
      const Node& node = in_[id];
      std::vector<ValueId> operands;
      for (const ValueId operand : node.operands) operands.push_back(again.contains(operand) ? again.at(operand) : rewriter_[operand]);
      again[node.results[0]] = b().make(*node.op->name, operands, node.attributes);
    }
    return known->second = b().make("barrier", {again.at(value)});
  }

  /// What `top` shows of `base`, of `now` in its place.
  ValueId seenThrough(ValueId top, ValueId base, ValueId now) {
    if (top == base) return now;
    const Node& view = in_.definition(top);
    return b().make(*view.op->name, {seenThrough(view.operands[0], base, now)}, view.attributes);
  }

  const Graph& in_;
  Rewriter rewriter_;
  int64_t least_;
  std::map<ValueId, Chain> chains_;
  std::map<NodeId, std::vector<std::tuple<size_t, ValueId, size_t>>> replaced_;  // operand, value and group
  std::map<std::pair<ValueId, size_t>, ValueId> stored_;
};

}  // namespace

Graph storeOperands(const Graph& graph, const StoreOperandsConfig& config) {
  const program::DeviceProfile& profile = config.profile;
  const bool has_units = profile.fixed_subgroups && profile.f16 && profile.matrix_f16 != program::MatrixShape{};
  if (profile.style == program::ExecutionStyle::Cpu || !has_units) return graph;
  return OperandKeeper(graph, profile).run();
}

}  // namespace lockstep::passes
