// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/detached.h"

#include <fmt/format.h>

#include <map>

#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"

namespace lockstep::detail {

Detached::Detached(Trace& trace, std::string_view op, const Where& where) : trace_(trace), op_(op), where_(where) {
  const graph::Graph& graph = trace.builder().graph();
  nodes_ = graph.nodes.size();
  values_ = graph.values.size();
  body_ = graph.body().nodes.size();
  outputs_ = graph.outputs.size();
  trace.beginFunction();
}

Detached::~Detached() {
  graph::Graph& graph = trace_.builder().mutableGraph();
  graph.nodes.resize(nodes_);
  graph.values.resize(values_);
  graph.regions.front().nodes.resize(body_);
  // Locations stay: a parameter outside has that of its first use, which may be here.
  graph.outputs.resize(outputs_);
  trace_.endFunction();
}

Tensor Detached::input(const std::string& name, const TensorType& type) {
  return trace_.tensor(trace_.builder().make("input", {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}}));
}

DetachedGraph Detached::take(const std::vector<Tensor>& results, const std::vector<std::string>& names) {
  const graph::Graph& from = trace_.builder().graph();
  if (from.outputs.size() > outputs_)
    raise(fmt::format("{}.capture", op_), "the function captures or prints a tensor", {}, where_,
          fmt::format("capture or print what {} gives", op_));
  if (trace_.updatesBufferFrom(values_))
    raise(fmt::format("{}.buffer", op_), "the function updates a buffer of a module", {}, where_,
          "return the new value from the function, and update the buffer after the call");
  DetachedGraph made;
  graph::Builder to;
  std::map<graph::ValueId, graph::ValueId> now;
  const auto inside = [&](graph::ValueId value) {
    const auto found = now.find(value);
    if (found != now.end()) return found->second;
    const TensorType type = from.typeOf(value);
    const std::string* leaf = leafName(from.definition(value));
    std::string name = graph::captureName(made.captures.size());
    if (leaf != nullptr && *leaf == graph::kRandomKeyInput) {
      made.is_random = true;
      name = *leaf;
    } else {
      made.captures.push_back(value);
    }
    return now[value] = to.make("input", {}, {{"name", std::move(name)}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
  };
  for (size_t i = body_; i < from.body().nodes.size(); ++i) {
    const graph::Node& node = from[from.body().nodes[i]];
    const std::string* name = leafName(node);
    made.is_random = made.is_random || (name != nullptr && *name == graph::kRandomKeyInput);
    std::vector<graph::ValueId> operands;
    for (const graph::ValueId operand : node.operands) operands.push_back(inside(operand));
    to.setLocation(to.addLocation(from, node));
    const std::vector<graph::ValueId> results_now = to.makeAll(*node.op->name, operands, to.addAttributes(from, node));
    for (size_t r = 0; r < results_now.size(); ++r) {
      now[node.results[r]] = results_now[r];
      to.name(results_now[r], from[node.results[r]].name);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) to.output(graph::OutputKind::Result, names[i], inside(trace_.value(results[i], op_, where_)));
  made.graph = to.take();
  return made;
}

}  // namespace lockstep::detail
