// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/group_body.h"

#include <fmt/format.h>

#include <map>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;

Graph groupBody(const Graph& graph, const Node& group) {
  Builder builder;
  if (group.location != 0) builder.setLocation(builder.addLocation(graph.locations[group.location - 1]));
  std::map<ValueId, ValueId> map;
  for (size_t i = 0; i < group.operands.size(); ++i) {
    const TensorType& type = graph.typeOf(group.operands[i]);
    map[group.operands[i]] =
        builder.make("input", {}, {{"name", fmt::format("a{}", i)}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
  }
  const Region& region = graph[group.regions[0]];
  for (NodeId id : region.nodes) {
    const Node& node = graph[id];
    if (node.location != 0) builder.setLocation(builder.addLocation(graph.locations[node.location - 1]));
    std::vector<ValueId> operands;
    for (ValueId operand : node.operands) operands.push_back(map.at(operand));
    std::vector<ValueId> results = builder.makeAll(*node.op->name, operands, node.attributes);
    for (size_t i = 0; i < results.size(); ++i) map[node.results[i]] = results[i];
  }
  for (size_t i = 0; i < region.yields.size(); ++i) builder.output(OutputKind::Result, fmt::format("r{}", i), map.at(region.yields[i]));
  return builder.take();
}

}  // namespace lockstep::passes
