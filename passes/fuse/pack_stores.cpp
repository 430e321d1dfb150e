// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/pack_stores.h"

#include <algorithm>

#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "passes/schedule/group_body.h"
#include "passes/schedule/word_owners.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// A new node with one result, which nothing uses yet.
NodeId addNode(Graph& graph, Node node, const TensorType& type, const std::string& name) {
  const NodeId id(graph.nodes.size());
  node.results = {ValueId(graph.values.size())};
  graph.values.push_back({type, id, 0, name});
  graph.nodes.push_back(std::move(node));
  return id;
}

Node castOf(ValueId operand, DType to, uint32_t location) {
  return {.op = &op("cast"), .operands = {operand}, .results = {}, .attributes = {{"dtype", to}}, .regions = {}, .location = location};
}

/// Result `index` of the group becomes one of the type of registers. Returns the map that packs it, which makes the old value.
NodeId unpack(Graph& graph, NodeId group, size_t index) {
  const ValueId packed = graph[group].results[index];
  const RegionId region = graph[group].regions.front();
  const TensorType type = graph.typeOf(packed);
  const TensorType wide{factsOf(type.dtype).compute, type.shape};
  const uint32_t location = graph[group].location;

  const NodeId widened = addNode(graph, castOf(graph[region].yields[index], wide.dtype, location), wide, {});
  graph.regions[region.index()].nodes.push_back(widened);
  graph.regions[region.index()].yields[index] = graph[widened].results.front();
  const ValueId stored(graph.values.size());
  graph.values.push_back({wide, group, static_cast<uint32_t>(index), {}});
  graph.nodes[group.index()].results[index] = stored;

  const NodeId narrowed = addNode(graph, castOf(stored, type.dtype, location), type, {});
  Region body;
  body.nodes = {narrowed};
  body.yields = {graph[narrowed].results.front()};
  const NodeId map(graph.nodes.size());
  graph.nodes.push_back({.op = &op("group"),
                         .operands = {stored},
                         .results = {packed},
                         .attributes = {{"kind", std::string(toString(GroupKind::Map))}},
                         .regions = {RegionId(graph.regions.size())},
                         .location = location});
  graph.regions.push_back(std::move(body));
  graph.values[packed.index()].node = map;
  graph.values[packed.index()].result = 0;
  return map;
}

}  // namespace

Graph packStores(Graph graph, const PackConfig& config) {
  std::vector<NodeId> nodes;
  for (const NodeId id : std::vector(graph.body().nodes)) {
    nodes.push_back(id);
    if (!std::holds_alternative<RegionLowering>(*graph[id].op->lower) || kindOf(graph[id]) == GroupKind::Map) continue;
    const auto isPackedResult = [&](ValueId value) { return isPacked(graph.typeOf(value).dtype); };
    if (std::ranges::none_of(graph[id].results, isPackedResult)) continue;
    const Graph body = groupBody(graph, graph[id]);
    const PlanQuery query{body, kindOf(graph[id]), config.profile, config.templates, &config.measured};
    for (size_t i = 0; i < graph[id].results.size(); ++i) {
      if (isPackedResult(graph[id].results[i]) && !ownsWords(query, i)) nodes.push_back(unpack(graph, id, i));
    }
  }
  graph.regions.front().nodes = std::move(nodes);
  return graph;
}

}  // namespace lockstep::passes
