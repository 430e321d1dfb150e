// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/scan.h"

#include <fmt/format.h>

#include <map>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"
#include "ir/graph/op_def.h"

namespace lockstep {

using detail::normaliseAxis;
using detail::raise;
using detail::Trace;

Tensor linear_recurrence(Tensor a, Tensor b, int64_t axis, RecurrenceOptions options, Where where) {
  Trace& trace = Trace::require("linear_recurrence", where);
  const int64_t along = normaliseAxis("linear_recurrence", axis, a, where);
  const std::vector<Tensor> operands{a, b};
  const std::vector<Tensor> made = trace.emitAll("linear_recurrence", operands, {{"axis", along}, {"reverse", options.reverse}}, where);
  if (!options.initial) return made[1];
  std::vector<int64_t> wanted = a.shape(where).extents();
  wanted.erase(wanted.begin() + along);
  if (options.initial->shape(where).extents() != wanted) {
    raise("linear_recurrence.initial",
          fmt::format("the initial state is {}, wanted {}", toString(options.initial->type(where)), toString(Shape(wanted))),
          {a, *options.initial}, where, "give it the shape of a without the axis");
  }
  return add(made[1], mul(made[0], expand_dims(*options.initial, along, where), where), where);
}

namespace {

/// What a function appends to a trace, taken out of it again as a graph of its own.
class Detached {
 public:
  Detached(Trace& trace, const Where& where) : trace_(trace), where_(where) {
    const graph::Graph& graph = trace.builder().graph();
    nodes_ = graph.nodes.size();
    values_ = graph.values.size();
    body_ = graph.body().nodes.size();
    locations_ = graph.locations.size();
    outputs_ = graph.outputs.size();
  }
  ~Detached() {
    graph::Graph& graph = trace_.builder().mutableGraph();
    graph.nodes.resize(nodes_);
    graph.values.resize(values_);
    graph.regions.front().nodes.resize(body_);
    graph.locations.resize(locations_);
    graph.outputs.resize(outputs_);
  }
  Detached(const Detached&) = delete;
  Detached& operator=(const Detached&) = delete;

  std::vector<Tensor> inputs(std::string_view tuple, const std::vector<Tensor>& like) {
    std::vector<Tensor> made;
    for (const Tensor& tensor : like) {
      made.push_back(trace_.tensor(trace_.builder().make(
          "input", {},
          {{"name", fmt::format("{}{}", tuple, made.size())}, {"dtype", tensor.dtype(where_)}, {"shape", std::vector<int64_t>{}}})));
    }
    return made;
  }

  graph::Graph take(const std::vector<Tensor>& results) {
    const graph::Graph& from = trace_.builder().graph();
    graph::Builder to;
    std::map<graph::ValueId, graph::ValueId> now;
    const auto inside = [&](graph::ValueId value) {
      const auto found = now.find(value);
      if (found == now.end()) {
        raise("associative_scan.capture", "the function reads a tensor that is not one of its arguments", {trace_.tensor(value)}, where_,
              "pass the tensor to the scan as one more operand, and return it unchanged");
      }
      return found->second;
    };
    if (from.outputs.size() > outputs_)
      raise("associative_scan.capture", "the function captures or prints a tensor", {}, where_, "capture or print what the scan gives");
    for (size_t i = body_; i < from.body().nodes.size(); ++i) {
      const graph::Node& node = from[from.body().nodes[i]];
      std::vector<graph::ValueId> operands;
      for (const graph::ValueId operand : node.operands) operands.push_back(inside(operand));
      const std::vector<graph::ValueId> made = to.makeAll(*node.op->name, operands, node.attributes);
      for (size_t r = 0; r < made.size(); ++r) now.emplace(node.results[r], made[r]);
    }
    for (const Tensor& result : results) to.output(graph::OutputKind::Result, "", inside(trace_.value(result, "associative_scan", where_)));
    return to.take();
  }

 private:
  Trace& trace_;
  const Where& where_;
  size_t nodes_ = 0, values_ = 0, body_ = 0, locations_ = 0, outputs_ = 0;
};

}  // namespace

std::vector<Tensor> associative_scan(const Combine& combine, std::vector<Tensor> elements, int64_t axis, ScanOptions options, Where where) {
  Trace& trace = Trace::require("associative_scan", where);
  if (elements.empty()) raise("associative_scan.C1", "there are no operands", {}, where, "give it at least one tensor");
  const int64_t along = normaliseAxis("associative_scan", axis, elements[0], where);
  graph::Graph function;
  {
    Detached detached(trace, where);
    const std::vector<Tensor> earlier = detached.inputs("earlier", elements), later = detached.inputs("later", elements);
    function = detached.take(combine(earlier, later));
  }
  return trace.emitAll("associative_scan", elements,
                       {{"axis", along}, {"reverse", options.reverse}, {"combine", print(canonical(function))}}, where);
}

}  // namespace lockstep
