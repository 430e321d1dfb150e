// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/chain_rows.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/schedule/choose_plan.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/row_chain.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Groups that become one kernel and all run in one level.
struct Chain {
  std::vector<NodeId> members;  ///< in execution order; empty once they went into another chain
  double seconds = 0;           ///< of its products, one after the other
  std::set<NodeId> readers;     ///< large products that read what they make
};

class Chains {
 public:
  Chains(const Graph& graph, const ChainConfig& config)
      : graph_(graph),
        config_(config),
        users_(graph.values.size()),
        is_output_(graph.values.size(), false),
        levels_(graph.nodes.size(), 0) {
    for (const NodeId id : graph.body().nodes) {
      for (const ValueId operand : graph[id].operands) users_[operand.index()].push_back(id);
    }
    for (const Output& output : graph.outputs) is_output_[output.value.index()] = true;
  }

  /// The chains of two groups or more.
  std::vector<Chain> find() {
    for (const NodeId id : graph_.body().nodes) {
      const Node& node = graph_[id];
      int64_t& level = levels_[id.index()];
      for (const ValueId operand : node.operands) level = std::max(level, levelOf(operand));
      const Lowering& lowering = *node.op->lower;
      if (std::holds_alternative<StorageLowering>(lowering) || std::holds_alternative<ViewLowering>(lowering)) continue;
      if (mayChain(id)) {
        const Chain alone{{id}, secondsOf(id), largeReaders(id)};
        if (join(alone, level)) continue;
        add(alone);
      }
      ++level;
    }
    std::erase_if(chains_, [](const Chain& chain) { return chain.members.size() < 2; });
    return std::move(chains_);
  }

  /// Whether a value is read by something else than these groups.
  [[nodiscard]] bool isReadElsewhere(ValueId value, const std::vector<NodeId>& groups) const {
    if (is_output_[value.index()]) return true;
    return std::ranges::any_of(users_[value.index()], [&](NodeId user) {
      if (std::ranges::find(groups, user) != groups.end()) return false;
      const ValueId shown = graph_[user].results.front();
      return !(isView(graph_, shown) && throughShapes(graph_, shown) != shown) || isReadElsewhere(shown, groups);
    });
  }

 private:
  [[nodiscard]] int64_t levelOf(ValueId value) const { return levels_[graph_[value].node.index()]; }

  /// Whether the group is of a kind that chains are made of, and small.
  [[nodiscard]] bool mayChain(NodeId id) const {
    const Node& node = graph_[id];
    if (!std::holds_alternative<RegionLowering>(*node.op->lower)) return false;
    const GroupKind kind = kindOf(node);
    if (kind == GroupKind::Contract ? isLarge(id) : kind != GroupKind::Map && kind != GroupKind::Rows) return false;
    // Long rows want more invocations and more of their elements under way than a chain has.
    const auto is_short = [&](ValueId value) { return graph_.shapeOf(value).elementCount() <= cost::elementsOfLevel(config_.profile); };
    return std::ranges::all_of(node.operands, is_short) && std::ranges::all_of(node.results, is_short);
  }
  [[nodiscard]] bool isLarge(NodeId id) const {
    const Node& node = graph_[id];
    return std::holds_alternative<RegionLowering>(*node.op->lower) && kindOf(node) == GroupKind::Contract && secondsOf(id) > levelSeconds();
  }
  /// Large products that read what the node makes.
  [[nodiscard]] std::set<NodeId> largeReaders(NodeId id) const {
    std::set<NodeId> readers;
    for (const ValueId result : graph_[id].results) {
      for (const NodeId user : users_[result.index()]) {
        if (std::holds_alternative<ViewLowering>(*graph_[user].op->lower)) readers.merge(largeReaders(user));
        if (isLarge(user)) readers.insert(user);
      }
    }
    return readers;
  }
  [[nodiscard]] double levelSeconds() const { return cost::ratesOf(config_.profile).level_seconds; }

  /// The time of the group's products as a part of a chain.
  [[nodiscard]] double secondsOf(NodeId id) const {
    double seconds = 0;
    for (const NodeId inner : graph_[graph_[id].regions.front()].nodes) {
      if (!std::holds_alternative<ContractLowering>(*graph_[inner].op->lower)) continue;
      const ContractShape shape = contractOf(graph_, inner);
      const int64_t units = config_.profile.parallel_units, rows = shape.batch * shape.m;
      const int64_t share = std::min(cost::kMostChainRows, divideUp(rows, units));
      seconds += cost::secondsOfUnit(divideUp(divideUp(rows, share), units) * share, shape.k, shape.n, config_.profile);
    }
    return seconds;
  }

  void add(Chain chain) {
    for (const NodeId member : chain.members) chain_of_[member] = chains_.size();
    chains_.push_back(std::move(chain));
  }

  /// Lets a group run with those that it would wait for. False where one of them cannot, or where that takes longer than to wait.
  bool join(const Chain& group, int64_t level) {
    std::set<size_t> sources;
    for (const ValueId operand : graph_[group.members.front()].operands) {
      if (levelOf(operand) < level) continue;
      const auto found = chain_of_.find(graph_[throughShapes(graph_, operand)].node);
      if (found == chain_of_.end()) return false;
      // Whoever reads what a source makes waits for the whole chain. A large product that does not need the group would gain nothing.
      if (!std::ranges::includes(group.readers, chains_[found->second].readers)) return false;
      sources.insert(found->second);
    }
    Chain whole = group;
    double longest = 0;
    for (const size_t source : sources) {
      const Chain& chain = chains_[source];
      whole.members.insert(whole.members.end(), chain.members.begin(), chain.members.end());
      whole.seconds += chain.seconds;
      longest = std::max(longest, chain.seconds);
    }
    // The sources ran beside each other before.
    const bool is_worth_it = whole.seconds > 0 && whole.seconds - group.seconds - longest <= levelSeconds();
    if (sources.empty() || whole.members.size() > cost::kMostChained || !is_worth_it) return false;
    std::ranges::sort(whole.members);
    if (!isKernel(whole.members)) return false;
    for (const size_t source : sources) chains_[source].members.clear();
    add(std::move(whole));
    return true;
  }

  [[nodiscard]] bool isKernel(const std::vector<NodeId>& members) const {
    const Graph body = bodyOf(members);
    if (inputsOf(body).size() + body.outputs.size() > config_.profile.max_storage_buffers) return false;
    const Result<PlanChoice> choice = choosePlan({body, GroupKind::RowChain, config_.profile, config_.templates});
    return choice.ok() && isShared(body, *choice);
  }

  /// Whether units have so little of each value to load, reduce or store that memory would take less than a level for as much in all of
  /// them. One workgroup may have few rows, but long ones.
  [[nodiscard]] bool isShared(const Graph& body, const PlanChoice& choice) const {
    const int64_t units = config_.profile.parallel_units, groups = int64_t{choice.groups[0]} * choice.groups[1];
    const int64_t rows = std::get<program::RowChainPlan>(choice.plan).rows_per_group * divideUp(groups, units);
    const RowChain chain = *findRowChain(body);
    return std::ranges::all_of(chain.steps, [&](const ChainStep& step) {
      const bool reduces = step.work == ChainWork::Reduce;
      const int64_t columns = reduces ? body.shapeOf(body[step.node].operands[0]).elementCount() / chain.rows : step.columns;
      return rows * columns <= cost::elementsOfLevel(config_.profile) / units;
    });
  }

  /// The body of the group that they would be.
  [[nodiscard]] Graph bodyOf(const std::vector<NodeId>& members) const {
    Builder builder;
    std::map<ValueId, ValueId> inside;
    for (const NodeId member : members) {
      const Node& group = graph_[member];
      for (const ValueId operand : group.operands) {
        if (inside.contains(operand)) continue;
        const TensorType& type = graph_.typeOf(operand);
        const auto shown = inside.find(throughShapes(graph_, operand));
        inside[operand] =
            shown != inside.end()
                ? builder.reshape(shown->second, type.shape)
                : builder.make("input", {},
                               {{"name", std::to_string(operand.index())}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
      }
      const Region& region = graph_[group.regions.front()];
      for (const NodeId id : region.nodes) {
        const Node& node = graph_[id];
        std::vector<ValueId> operands;
        for (const ValueId operand : node.operands) operands.push_back(inside.at(operand));
        const std::vector<ValueId> results = builder.makeAll(*node.op->name, operands, node.attributes);
        for (size_t i = 0; i < results.size(); ++i) inside[node.results[i]] = results[i];
      }
      for (size_t i = 0; i < group.results.size(); ++i) inside[group.results[i]] = inside.at(region.yields[i]);
    }
    for (const NodeId member : members) {
      for (const ValueId result : graph_[member].results) {
        if (isReadElsewhere(result, members)) builder.output(OutputKind::Result, std::to_string(result.index()), inside.at(result));
      }
    }
    return builder.take();
  }

  const Graph& graph_;
  const ChainConfig& config_;
  std::vector<std::vector<NodeId>> users_;  // by value
  std::vector<bool> is_output_;             // by value
  std::vector<int64_t> levels_;             // by node: the level in which its results are made; 0 = before all
  std::map<NodeId, size_t> chain_of_;
  std::vector<Chain> chains_;
};

/// Makes the chain's last member the group of all of them.
void merge(Graph& graph, const Chains& chains, const Chain& chain) {
  std::vector<ValueId> operands, results, yields;
  std::vector<NodeId> nodes;
  std::map<ValueId, ValueId> inside;  // what the members read, as the group has it
  for (const NodeId member : chain.members) {
    const std::vector<ValueId> wanted = graph[member].operands;
    for (const ValueId operand : wanted) {
      if (inside.contains(operand)) continue;
      const auto shown = inside.find(throughShapes(graph, operand));
      if (shown == inside.end()) operands.push_back(operand);
      inside[operand] = shown == inside.end() ? operand : viewInside(graph, nodes, operand, shown->second);
    }
    const Region region = graph[graph[member].regions.front()];
    for (const NodeId id : region.nodes) {
      nodes.push_back(id);
      for (ValueId& operand : graph.nodes[id.index()].operands) {
        if (const auto found = inside.find(operand); found != inside.end()) operand = found->second;
      }
    }
    for (size_t i = 0; i < graph[member].results.size(); ++i) inside[graph[member].results[i]] = region.yields[i];
  }
  const NodeId host = chain.members.back();
  for (const NodeId member : chain.members) {
    for (const ValueId result : graph[member].results) {
      if (!chains.isReadElsewhere(result, chain.members)) continue;
      graph.values[result.index()].node = host;
      graph.values[result.index()].result = static_cast<uint32_t>(results.size());
      results.push_back(result);
      yields.push_back(inside.at(result));
    }
  }
  Node& group = graph.nodes[host.index()];
  group.operands = std::move(operands);
  group.results = std::move(results);
  group.attributes.set("kind", std::string(toString(GroupKind::RowChain)));
  Region& region = graph.regions[group.regions.front().index()];
  region.nodes = std::move(nodes);
  region.yields = std::move(yields);
}

/// The nodes that are left, each after all that it reads and otherwise in the old order.
std::vector<NodeId> ordered(const Graph& graph, const std::set<NodeId>& gone) {
  std::map<NodeId, std::vector<NodeId>> readers;
  std::map<NodeId, size_t> waits;
  std::map<NodeId, size_t> place;
  std::vector<NodeId> order;
  for (const NodeId id : graph.body().nodes) {
    if (gone.contains(id)) continue;
    place[id] = place.size();
    size_t& count = waits[id];
    for (const ValueId operand : graph[id].operands) {
      readers[graph[operand].node].push_back(id);
      ++count;
    }
  }
  std::priority_queue<std::pair<size_t, NodeId>, std::vector<std::pair<size_t, NodeId>>, std::greater<>> ready;
  for (const auto& [id, at] : place) {
    if (waits[id] == 0) ready.emplace(at, id);
  }
  while (!ready.empty()) {
    const NodeId next = ready.top().second;
    ready.pop();
    order.push_back(next);
    for (const NodeId reader : readers[next]) {
      if (--waits[reader] == 0) ready.emplace(place[reader], reader);
    }
  }
  if (order.size() != place.size()) internalError("chainRows made groups that need each other");
  return order;
}

/// Views of results that only chains read, which no longer exist outside of them.
void findUnread(const Graph& graph, std::set<NodeId>& gone) {
  std::set<ValueId> read;
  for (const Output& output : graph.outputs) read.insert(output.value);
  const std::vector<NodeId>& nodes = graph.body().nodes;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node& node = graph[nodes[i]];
    if (gone.contains(nodes[i])) continue;
    if (isView(graph, node.results.front()) && !read.contains(node.results.front())) {
      gone.insert(nodes[i]);
    } else {
      read.insert(node.operands.begin(), node.operands.end());
    }
  }
}

}  // namespace

Graph chainRows(Graph graph, const ChainConfig& config) {
  const Graph before = graph;
  Chains search(before, config);
  const std::vector<Chain> chains = search.find();
  if (chains.empty()) return graph;
  std::set<NodeId> gone;
  for (const Chain& chain : chains) {
    merge(graph, search, chain);
    gone.insert(chain.members.begin(), chain.members.end() - 1);
  }
  findUnread(graph, gone);
  graph.regions.front().nodes = ordered(graph, gone);
  return graph;
}

}  // namespace lockstep::passes
