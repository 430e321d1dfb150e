// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/fuse.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "passes/fuse/clusters.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

struct State {
  const Graph& in;
  std::vector<bool> storage;
  Clusters clusters;
  Rewriter rewriter;               // maps storage values and group results
  std::vector<bool> begun;         // by cluster
  std::vector<bool> used_outside;  // by old value: a yield of its cluster

  State(const Graph& graph, const FuseConfig& config)
      : in(graph),
        storage(storageNodes(graph)),
        clusters(makeClusters(graph, storage, config)),
        rewriter(graph),
        begun(clusters.clusters.size(), false) {
    findYields();
  }

  Builder& b() { return rewriter.builder(); }
  [[nodiscard]] int32_t clusterOf(ValueId value) const { return clusters.of_node[in[value].node.index()]; }
  [[nodiscard]] bool isOuter(ValueId value) const { return storage[in[value].node.index()] || clusterOf(value) >= 0; }

  /// The storage values and group results that a value is computed from through views and cheap nodes.
  void bases(ValueId value, std::vector<ValueId>& found) const {
    if (isOuter(value)) {
      found.push_back(value);
      return;
    }
    for (ValueId operand : in.definition(value).operands) bases(operand, found);
  }

  void findYields() {
    used_outside.assign(in.values.size(), false);
    for (NodeId id : in.body().nodes) {
      const Node& node = in[id];
      int32_t cluster = clusters.of_node[id.index()];
      if (cluster < 0 && !storage[id.index()]) continue;
      for (ValueId operand : node.operands) {
        std::vector<ValueId> found;
        bases(operand, found);
        for (ValueId base : found) {
          if (cluster < 0 || clusterOf(base) != cluster) used_outside[base.index()] = true;
        }
      }
    }
    for (const Output& output : in.outputs) {
      std::vector<ValueId> found;
      bases(output.value, found);
      for (ValueId base : found) used_outside[base.index()] = true;
    }
  }

  /// A value that must exist outside groups. Models are as deep as users make them, so what it needs first waits on a stack of our own.
  struct Wanted {
    ValueId value;
    bool needs_are_made = false;
  };

  /// The value outside groups: a storage value, a group's result, a reshape of it, or what a group that only copies makes. It is made on
  /// the first call, with all that it needs.
  ValueId outer(ValueId value) {
    std::vector<Wanted> stack{{value}};
    while (!stack.empty()) {
      Wanted& top = stack.back();
      if (rewriter.has(top.value)) {
        stack.pop_back();
      } else if (top.needs_are_made) {
        make(top.value);
        if (!rewriter.has(top.value)) internalError("fuse made a group without a result that others read");
      } else {
        top.needs_are_made = true;
        const std::vector<ValueId> needs = needsOf(top.value);
        for (size_t i = needs.size(); i-- > 0;) {
          if (!rewriter.has(needs[i])) stack.push_back({needs[i]});
        }
      }
    }
    return rewriter[value];
  }

  [[nodiscard]] static bool holdsParts(const Node& node) {
    return std::holds_alternative<AliasPack>(*node.op->alias) || std::holds_alternative<AliasUpdate>(*node.op->alias);
  }

  /// What must exist before a value is made.
  std::vector<ValueId> needsOf(ValueId value) {
    if (storage[in[value].node.index()]) return in.definition(value).operands;
    if (const int32_t cluster = clusterOf(value); cluster >= 0) {
      if (begun[static_cast<size_t>(cluster)]) internalError("fuse made groups that need each other");
      begun[static_cast<size_t>(cluster)] = true;
      return externalOf(cluster);
    }
    if (const std::optional<ValueId> base = reshaped(value)) return {*base};
    std::vector<ValueId> found;
    bases(value, found);
    return found;
  }

  /// Makes a value whose needs are there.
  void make(ValueId value) {
    if (storage[in[value].node.index()]) {
      rewriter.copy(in.definition(value));
    } else if (const int32_t cluster = clusterOf(value); cluster >= 0) {
      buildCluster(cluster);
    } else if (const std::optional<ValueId> base = reshaped(value)) {
      rewriter.set(value, b().reshape(rewriter[*base], in.shapeOf(value)));
    } else {
      rewriter.set(value, copyOf(value));
    }
  }

  /// The group's result that a view is, in another shape; nothing where the view moves elements.
  [[nodiscard]] std::optional<ValueId> reshaped(ValueId value) const {
    if (!isView(in, value)) return std::nullopt;
    IndexMap map = identityMap(in.shapeOf(value).rank());
    ValueId base = value;
    while (!isOuter(base) && isView(in, base)) {
      const Node& view = in.definition(base);
      map = compose(map, std::get<ViewLowering>(*view.op->lower).map(in, view), in.shapeOf(base));
      base = view.operands[0];
    }
    const bool same = clusterOf(base) >= 0 && isLinearIdentity(map, in.shapeOf(value), in.shapeOf(base));
    return same ? std::optional(base) : std::nullopt;
  }

  /// A group that only copies (a permuted view that must have storage, a constant that is an output).
  ValueId copyOf(ValueId value) {
    std::vector<ValueId> found;
    bases(value, found);
    for (ValueId base : found) outer(base);
    return buildGroup(GroupKind::Map, {}, {value}, found).front();
  }

  /// What the members of a cluster read that is made elsewhere.
  [[nodiscard]] std::vector<ValueId> externalOf(int32_t cluster) const {
    std::vector<ValueId> external;
    for (NodeId id : clusters.clusters[static_cast<size_t>(cluster)].members) {
      for (ValueId operand : in[id].operands) {
        std::vector<ValueId> found;
        bases(operand, found);
        std::ranges::copy_if(found, std::back_inserter(external), [&](ValueId base) { return clusterOf(base) != cluster; });
      }
    }
    return external;
  }

  void buildCluster(int32_t index) {
    const Cluster& cluster = clusters.clusters[static_cast<size_t>(index)];
    std::vector<ValueId> yields;
    for (NodeId id : cluster.members) {
      std::ranges::copy_if(in[id].results, std::back_inserter(yields), [&](ValueId result) { return used_outside[result.index()]; });
    }
    std::vector<ValueId> results = buildGroup(cluster.kind, cluster.members, yields, externalOf(index));
    for (size_t i = 0; i < yields.size(); ++i) rewriter.set(yields[i], results[i]);
  }

  /// Appends a group node whose region holds the members and the views and cheap nodes between them.
  std::vector<ValueId> buildGroup(GroupKind kind, const std::vector<NodeId>& members, const std::vector<ValueId>& yields,
                                  const std::vector<ValueId>& external) {
    Graph& out = b().mutableGraph();
    size_t first = out.regions.front().nodes.size();
    std::map<ValueId, ValueId> inner;
    for (ValueId base : external) inner[base] = rewriter[base];
    std::function<ValueId(ValueId)> copy = [&](ValueId value) -> ValueId {
      if (auto found = inner.find(value); found != inner.end()) return found->second;
      const Node& node = in.definition(value);
      std::vector<ValueId> operands;
      for (ValueId operand : node.operands) operands.push_back(copy(operand));
      b().setLocation(node.location);
      std::vector<ValueId> results = b().makeAll(*node.op->name, operands, node.attributes);
      for (size_t i = 0; i < results.size(); ++i) {
        inner[node.results[i]] = results[i];
        b().name(results[i], in[node.results[i]].name);
      }
      return inner[value];
    };
    for (NodeId id : members) copy(in[id].results[0]);
    Region region;
    for (ValueId yield : yields) region.yields.push_back(copy(yield));
    std::vector<NodeId>& body = out.regions.front().nodes;
    region.nodes.assign(body.begin() + static_cast<std::ptrdiff_t>(first), body.end());
    body.resize(first);

    Node group{.op = &op("group"),
               .operands = {},
               .results = {},
               .attributes = {{"kind", std::string(toString(kind))}},
               .regions = {},
               .location = 0};
    for (ValueId base : external) {
      ValueId operand = rewriter[base];
      if (std::find(group.operands.begin(), group.operands.end(), operand) == group.operands.end()) group.operands.push_back(operand);
    }
    if (!region.nodes.empty()) group.location = out[region.nodes.back()].location;
    NodeId id(out.nodes.size());
    for (size_t i = 0; i < yields.size(); ++i) {
      group.results.emplace_back(out.values.size());
      out.values.push_back({in.typeOf(yields[i]), id, static_cast<uint32_t>(i), in[yields[i]].name});
    }
    group.regions = {RegionId(out.regions.size())};
    out.regions.push_back(std::move(region));
    out.nodes.push_back(group);
    out.regions.front().nodes.push_back(id);
    return group.results;
  }
};

}  // namespace

Result<Graph> fuse(const Graph& graph, const FuseConfig& config) {
  State state(graph, config);
  for (NodeId id : graph.body().nodes) {
    // Named leaves are the interface and stay in their order, used or not.
    if (state.storage[id.index()] && graph[id].operands.empty()) state.outer(graph[id].results[0]);
  }
  for (const Output& output : graph.outputs) {
    bool next_state = output.kind == OutputKind::NextState;
    graph::ValueId value;
    const Node& maker = graph.definition(output.value);
    bool leaf = !State::holdsParts(maker) && !std::holds_alternative<KernelLowering>(*maker.op->lower) &&
                !std::holds_alternative<LoopLowering>(*maker.op->lower);
    if (!next_state && state.storage[graph[output.value].node.index()] && leaf) {
      value = state.copyOf(output.value);  // a leaf shown as an output gets storage of its own
    } else {
      value = state.outer(output.value);
    }
    state.b().output(output.kind, output.name, value);
  }
  return state.rewriter.take();
}

}  // namespace lockstep::passes
