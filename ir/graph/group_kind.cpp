// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/group_kind.h"

#include <fmt/format.h>

#include "ir/graph/op_def.h"

namespace lockstep::graph {
namespace {

/// The kinds that a node can be the seed of: a reduction two, an element or a view none.
struct Seeds {
  bool reduce = false, other = false;
  GroupKind kind = GroupKind::Map;  ///< of `other`
};

struct SeedFinder {
  Seeds operator()(const ReduceLowering&) const { return {.reduce = true}; }
  Seeds operator()(const ScanLowering&) const { return {.other = true, .kind = GroupKind::Scan}; }
  Seeds operator()(const ScatterLowering&) const { return {.other = true, .kind = GroupKind::Scatter}; }
  Seeds operator()(const ContractLowering&) const { return {.other = true, .kind = GroupKind::Contract}; }
  Seeds operator()(const TemplateLowering&) const { return {.other = true, .kind = GroupKind::Template}; }
  template <class Lowering>
  Seeds operator()(const Lowering&) const {
    return {};
  }
};

/// Whether a kernel that is made of a group can hold the node.
bool isMember(const Node& node, bool inputs) {
  const auto& lower = *node.op->lower;
  if (std::holds_alternative<StorageLowering>(lower)) return inputs && leafKind(node) == LeafKind::Input;
  return !std::holds_alternative<DecomposeLowering>(lower) && !std::holds_alternative<KernelLowering>(lower) &&
         !std::holds_alternative<RegionLowering>(lower);
}

/// Which rows go through a chain is looked at where its kernel is planned.
std::string misfitOfChain(const Graph& graph, const std::vector<NodeId>& nodes, bool inputs) {
  bool multiplies = false;
  for (const NodeId id : nodes) {
    const Node& node = graph[id];
    if (!isMember(node, inputs)) return fmt::format("'{}' cannot be a part of a kernel", *node.op->name);
    const Seeds seeds = std::visit(SeedFinder{}, *node.op->lower);
    const bool is_product = seeds.other && seeds.kind == GroupKind::Contract;
    const bool fits = seeds.reduce ? reducesRows(graph, node) : is_product || !seeds.other;
    if (!fits) return fmt::format("'{}' cannot be a part of a kernel of kind '{}'", *node.op->name, toString(GroupKind::RowChain));
    multiplies = multiplies || is_product;
  }
  return multiplies ? std::string() : fmt::format("a kernel of kind '{}' needs a contraction", toString(GroupKind::RowChain));
}

}  // namespace

bool reducesRows(const Graph& graph, const Node& node) {
  const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower);
  if (reduce == nullptr) return false;
  const std::vector<int64_t> axes = reduce->axes(graph, node);
  const size_t first = graph.shapeOf(node.operands[0]).rank() - axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(first + i)) return false;
  }
  return true;
}

std::string misfit(GroupKind kind, const Graph& graph, const std::vector<NodeId>& nodes, bool inputs) {
  const Node* first = nullptr;  // seed
  if (kind == GroupKind::RowChain) return misfitOfChain(graph, nodes, inputs);
  const bool reduces = kind == GroupKind::Rows || kind == GroupKind::Columns;
  for (const NodeId id : nodes) {
    const Node& node = graph[id];
    if (!isMember(node, inputs)) return fmt::format("'{}' cannot be a part of a kernel", *node.op->name);
    const Seeds seeds = std::visit(SeedFinder{}, *node.op->lower);
    if (!seeds.reduce && !seeds.other) continue;
    const bool fits = seeds.reduce ? reduces : seeds.kind == kind;
    if (!fits) return fmt::format("'{}' cannot be a part of a kernel of kind '{}'", *node.op->name, toString(kind));
    if (first != nullptr && !reduces) return fmt::format("a kernel of kind '{}' has one '{}'", toString(kind), *first->op->name);
    const bool is_beside = kind == GroupKind::Rows && !reducesRows(graph, node);
    if (is_beside && first == nullptr) return "a kernel of rows begins with a reduction of them";
    if (is_beside) continue;
    if (first != nullptr) {
      const auto counts = [&](const Node& reduce) {
        return std::pair(graph.shapeOf(reduce.operands[0]).elementCount(), graph.shapeOf(reduce.results[0]).elementCount());
      };
      if (counts(*first) != counts(node)) return "reductions of one kernel go over spaces of one size";
    } else {
      first = &node;
    }
  }
  if (first == nullptr && kind != GroupKind::Map) return fmt::format("a kernel of kind '{}' needs an op of that kind", toString(kind));
  return {};
}

}  // namespace lockstep::graph
