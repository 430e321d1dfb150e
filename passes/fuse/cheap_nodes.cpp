// SPDX-License-Identifier: Apache-2.0
// Which nodes readers compute again, and which are storage: what is known before there are clusters.
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "passes/cost.h"
#include "passes/fuse/cluster_state.h"
#include "passes/fuse/clusters.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// By node, how often a product may read each element of its result, or what it computes again of it; 0 where none does. `cheap`: what
/// readers may compute again.
std::vector<int64_t> feedProducts(const Graph& graph, const std::vector<bool>& cheap, const FuseConfig& config) {
  std::vector<int64_t> feeds(graph.nodes.size(), 0);
  const std::vector<NodeId>& nodes = graph.body().nodes;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = graph[nodes[i]];
    const Lowering& lowering = *node.op->lower;
    // What is rounded is kept rounded, unless it is made of something cheap: then readers round it again (addRepeatable).
    const bool rounds_again =
        isPacked(graph.typeOf(node.results[0]).dtype) && !node.operands.empty() && cheap[graph[node.operands[0]].node.index()];
    const bool passes =
        std::holds_alternative<ViewLowering>(lowering) ||
        (std::holds_alternative<ElementLowering>(lowering) && (!isPacked(graph.typeOf(node.results[0]).dtype) || rounds_again));
    const bool repeats = std::holds_alternative<ContractLowering>(lowering) || std::holds_alternative<TemplateLowering>(lowering);
    if (!repeats && !(passes && feeds[nodes[i].index()] > 0)) continue;
    std::array<int64_t, 2> loads{1, 1};
    if (const auto* contract = std::get_if<ContractLowering>(&lowering)) loads = loadsPerElement(contract->shape(graph, node), config);
    for (size_t operand = 0; operand < node.operands.size(); ++operand) {
      const ValueId read = node.operands[operand];
      int64_t& times = feeds[graph[read].node.index()];
      // A window reads an element several times. What is kept is made once.
      const bool is_kept = std::holds_alternative<ElementLowering>(lowering) && !cheap[nodes[i].index()];
      const int64_t of_result = graph.shapeOf(node.results[0]).elementCount(), of_read = graph.shapeOf(read).elementCount();
      const int64_t through = is_kept ? 1 : std::max<int64_t>(1, feeds[nodes[i].index()] * of_result / std::max<int64_t>(of_read, 1));
      times = std::max(times, repeats ? loads[std::min<size_t>(operand, 1)] : through);
    }
  }
  return feeds;
}

/// `feeds`: how often products read the results of nodes; they compute nothing expensive again, and little many times.
std::vector<bool> cheapBeside(const Graph& graph, const std::vector<bool>& storage, const std::vector<int64_t>& feeds) {
  std::vector<bool> cheap(graph.nodes.size(), false);
  std::vector<int64_t> operations(graph.nodes.size(), 0), widest(graph.nodes.size(), 0);  // of a cheap node; elements of what it reads
  // The only stored value that a cheap node reads, where that is a packed one; else `reads_more`.
  std::vector<ValueId> packed(graph.nodes.size());
  std::vector<bool> reads_more(graph.nodes.size(), false);
  std::vector<ValueId> early_source(graph.nodes.size());  // of a number the stored one that it is made of
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const auto* element = std::get_if<ElementLowering>(&*node.op->lower);
    if (element == nullptr) continue;
    int64_t& count = operations[id.index()];
    count = 1;
    std::set<ValueId> sources;  // what a number is made of
    bool is_early = true;       // all of that is there from the beginning
    for (ValueId operand : node.operands) {
      NodeId maker = graph[operand].node;
      while (!storage[maker.index()] && std::holds_alternative<ViewLowering>(*graph[maker].op->lower)) {
        operand = graph[maker].operands[0];
        maker = graph[operand].node;
      }
      is_early = is_early && (storage[maker.index()] || cheap[maker.index()]);
      if (storage[maker.index()]) sources.insert(operand);
      if (early_source[maker.index()].valid()) sources.insert(early_source[maker.index()]);
      int64_t read = cheap[maker.index()] ? widest[maker.index()] : graph.shapeOf(operand).elementCount();
      widest[id.index()] = std::max(widest[id.index()], read);
      const bool is_repeated = cheap[maker.index()], is_packed = isPacked(graph.typeOf(operand).dtype);
      const ValueId source = is_repeated ? packed[maker.index()] : is_packed ? operand : ValueId();
      ValueId& only = packed[id.index()];
      const bool is_other = source.valid() ? only.valid() && only != source : !is_repeated;
      if (is_other || (is_repeated && reads_more[maker.index()])) reads_more[id.index()] = true;
      if (source.valid()) only = source;
      count += operations[maker.index()];
    }
    const bool is_of_position = widest[id.index()] == 0 && count <= cost::kRepeatedOfPositions;
    const bool is_seldom = is_of_position || count * (feeds[id.index()] - 1) <= cost::kRepeatedInLoads;
    // A number that is made of another one is read one way or the other. Loops compute it once, before them.
    const int64_t made = graph.shapeOf(node.results[0]).elementCount();
    const bool is_number = made == 1 && widest[id.index()] == 1 && is_early && sources.size() == 1;
    if (is_number) early_source[id.index()] = *sources.begin();
    bool spreads = !node.operands.empty() && !element->transcendental && !element->scalar_only && count <= cost::kRepeatedOfSmall &&
                   (is_number || (is_seldom && cost::kSmallerBy * widest[id.index()] <= made));
    // What is computed from a packed value takes more memory than that value, which is often kept anyway.
    const TensorType& type = graph.typeOf(node.results[0]);
    const ValueId source = packed[id.index()];
    const bool unpacks = source.valid() && !reads_more[id.index()] && !isPacked(type.dtype) && !element->scalar_only &&
                         count <= cost::kRepeatedOfPacked && !(element->transcendental && feeds[id.index()] > 0) &&
                         graph.shapeOf(source).elementCount() <= type.shape.elementCount();
    // Reading a packed value and widening it costs less than reading what it becomes, so the packed one is kept.
    cheap[id.index()] = element->cheap || spreads || unpacks || widens(graph, node);
    if (!cheap[id.index()]) count = 0;
  }
  return cheap;
}

}  // namespace

std::vector<bool> cheapNodes(const Graph& graph, const std::vector<bool>& storage, const FuseConfig& config) {
  const std::vector<bool> most = cheapBeside(graph, storage, std::vector<int64_t>(graph.nodes.size(), 0));
  return cheapBeside(graph, storage, feedProducts(graph, most, config));
}

void keepWithinBindings(const Graph& graph, const std::vector<bool>& storage, const FuseConfig& config, std::vector<bool>& cheap) {
  using Values = std::set<ValueId>;
  // What is read of a node's results: what a cheap node reads, otherwise the results.
  std::vector<Values> reads(graph.nodes.size());
  const auto makerOf = [&](ValueId value) {
    while (!storage[graph[value].node.index()] && isView(graph, value)) value = graph.definition(value).operands[0];
    return graph[value].node;
  };
  const auto readsOf = [&](const Node& node) {
    Values all;
    for (ValueId operand : node.operands) all.merge(Values(reads[makerOf(operand).index()]));
    return all;
  };
  const auto fits = [&](const Node& node) { return readsOf(node).size() + node.results.size() <= config.max_bindings; };
  bool changed = false;
  const auto keep = [&](NodeId id) {
    changed = changed || cheap[id.index()];
    cheap[id.index()] = false;
    reads[id.index()] = {graph[id].results.begin(), graph[id].results.end()};
  };
  /// The cheap node through which a node reads the most; invalid when there is none through which it reads several values.
  const auto widest = [&](const Node& node) {
    NodeId found;
    size_t most = 1;
    for (ValueId operand : node.operands) {
      const NodeId maker = makerOf(operand);
      if (!cheap[maker.index()] || reads[maker.index()].size() <= most) continue;
      found = maker;
      most = reads[maker.index()].size();
    }
    return found;
  };
  do {
    changed = false;
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (!storage[id.index()] && std::holds_alternative<ViewLowering>(*node.op->lower)) continue;
      if (cheap[id.index()] && fits(node)) {
        reads[id.index()] = readsOf(node);
        continue;
      }
      keep(id);
      if (storage[id.index()]) continue;
      for (NodeId wide = widest(node); wide.valid() && !fits(node); wide = widest(node)) keep(wide);
    }
  } while (changed);
}

std::vector<bool> storageNodes(const Graph& graph) {
  std::vector<bool> storage(graph.nodes.size(), false);
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const Lowering& lower = *node.op->lower;
    const bool outside = std::holds_alternative<StorageLowering>(lower) || std::holds_alternative<KernelLowering>(lower) ||
                         std::holds_alternative<LoopLowering>(lower);
    if (outside) storage[id.index()] = true;
    const auto* view = std::get_if<ViewLowering>(&*node.op->lower);
    if (view == nullptr || !storage[graph[node.operands[0]].node.index()]) continue;
    int64_t start = 0;
    storage[id.index()] = isContiguousSlice(view->map(graph, node), graph.shapeOf(node.results[0]), graph.shapeOf(node.operands[0]),
                                            sliceAlignment(graph.typeOf(node.results[0]).dtype), start);
  }
  return storage;
}

}  // namespace lockstep::passes
