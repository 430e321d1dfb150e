// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/gradient.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "frontend/trace/trace.h"
#include "ir/graph/op_def.h"
#include "passes/graph/grad.h"

namespace lockstep {

using detail::raise;
using detail::Trace;
using graph::Builder;
using graph::NodeId;
using graph::ValueId;

namespace {

std::vector<ValueId> valuesOf(const Trace& trace, std::span<const Tensor> tensors, std::string_view what, const Where& where) {
  std::vector<ValueId> values;
  for (const Tensor& tensor : tensors) values.push_back(trace.value(tensor, what, where));
  return values;
}

std::vector<Tensor> tensorsOf(const Trace& trace, std::span<const ValueId> values) {
  std::vector<Tensor> tensors;
  for (ValueId value : values) tensors.push_back(trace.tensor(value));
  return tensors;
}

std::vector<ValueId> cotangentLeaves(Builder& builder, std::span<const ValueId> results) {
  std::vector<ValueId> leaves;
  for (ValueId result : results) leaves.push_back(builder.make("cotangent", {}, {{"shape", builder.shapeOf(result).extents()}}));
  return leaves;
}

/// The node that ties results, inputs and gradients together.
std::vector<Tensor> bindGradients(Trace& trace, std::span<const ValueId> results, std::span<const ValueId> cotangents,
                                  std::span<const ValueId> inputs, std::span<const ValueId> gradients, bool recomputed,
                                  const Where& where) {
  std::vector<Tensor> operands;
  for (std::span<const ValueId> part : {results, cotangents, inputs, gradients}) {
    for (ValueId value : part) operands.push_back(trace.tensor(value));
  }
  graph::Attributes attributes{{"results", static_cast<int64_t>(results.size())}};
  if (recomputed) attributes.set("recomputed", true);
  return trace.emitAll("custom_gradient", operands, std::move(attributes), where);
}

/// What a stretch of the body uses from outside it. Leaves count as outside: they are there already.
std::vector<ValueId> usedFromOutside(const graph::Graph& graph, std::span<const NodeId> nodes) {
  std::set<ValueId> inside, seen;
  std::vector<ValueId> used;
  for (NodeId id : nodes) {
    const graph::Node& node = graph[id];
    for (ValueId operand : node.operands) {
      const graph::Node& definition = graph.definition(operand);
      bool constant = definition.operands.empty() && graph::leafName(definition) == nullptr;
      if (!constant && !inside.contains(operand) && seen.insert(operand).second) used.push_back(operand);
    }
    if (!node.operands.empty()) inside.insert(node.results.begin(), node.results.end());
  }
  return used;
}

}  // namespace

std::vector<Tensor> grad(Tensor y, std::vector<Tensor> wrt, Where where) {
  Trace& trace = Trace::require("grad", where);
  std::vector<ValueId> outputs{trace.value(y, "grad", where)}, values = valuesOf(trace, wrt, "grad", where);
  if (y.type(where) != TensorType{})
    raise("grad.C2", fmt::format("the function is {}, wanted a scalar f32", toString(y.type(where))), {y}, where,
          "reduce it with sum or mean");
  for (const Tensor& x : wrt) {
    if (x.dtype(where) != DType::F32) {
      raise("grad.C4", fmt::format("{} has no gradient, wanted f32", toString(x.type(where))), {x}, where,
            "differentiate by the f32 tensor that it was made from");
    }
  }
  Builder& builder = trace.builder();
  std::vector<ValueId> seeds{builder.constant(1.0, Shape{})};
  passes::AppendedGradients gradients = passes::appendGradients(builder, outputs, seeds, values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (gradients.stops[i].valid()) {
      const std::string what = fmt::format("tensor {} of grad ({}) gets", i + 1, toString(builder.typeOf(values[i])));
      Diagnostic stopped = passes::describeStop(builder.graph(), what, gradients.stops[i]);
      stopped.notes.push_back({.message = "its gradient is asked for here", .where = detail::toLocation(where)});
      throw Error(std::move(stopped));
    }
    if (!gradients.values[i].valid()) gradients.values[i] = builder.constant(0.0, Shape(builder.shapeOf(values[i])));
  }
  return tensorsOf(trace, gradients.values);
}

std::vector<Tensor> custom_gradient(std::vector<Tensor> inputs, const std::function<std::vector<Tensor>(std::span<const Tensor>)>& forward,
                                    const std::function<std::vector<Tensor>(const BackwardCall&)>& backward, Where where) {
  Trace& trace = Trace::require("custom_gradient", where);
  Builder& builder = trace.builder();
  std::vector<ValueId> input_values = valuesOf(trace, inputs, "custom_gradient", where);
  std::vector<Tensor> made = forward(inputs);
  std::vector<ValueId> results = valuesOf(trace, made, "custom_gradient", where);
  for (const Tensor& result : made) {
    if (result.dtype(where) != DType::F32) {
      raise("custom_gradient.C2", fmt::format("a result is {}, wanted f32", toString(result.type(where))), {result}, where,
            "return it outside of the custom gradient, or cast it");
    }
  }
  std::vector<ValueId> cotangents = cotangentLeaves(builder, results);
  std::vector<Tensor> cotangent_tensors = tensorsOf(trace, cotangents);
  std::vector<Tensor> returned = backward({inputs, made, cotangent_tensors});
  if (returned.size() != inputs.size()) {
    raise("custom_gradient.C1", fmt::format("backward returns {} gradients for {} inputs", returned.size(), inputs.size()), {}, where,
          "return Tensor() for an input without a gradient");
  }
  std::vector<ValueId> wanted, gradients;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (returned[i].trace() == 0) continue;
    wanted.push_back(input_values[i]);
    gradients.push_back(trace.value(returned[i], "custom_gradient", where));
  }
  return bindGradients(trace, results, cotangents, wanted, gradients, false, where);
}

std::vector<Tensor> checkpoint(const std::function<std::vector<Tensor>()>& forward, Where where) {
  Trace& trace = Trace::require("checkpoint", where);
  Builder& builder = trace.builder();
  size_t first = builder.graph().body().nodes.size();
  std::vector<Tensor> made = forward();
  std::vector<ValueId> results = valuesOf(trace, made, "checkpoint", where);
  for (const Tensor& result : made) {
    if (result.dtype(where) != DType::F32) {
      raise("checkpoint.C1", fmt::format("a result is {}, wanted f32", toString(result.type(where))), {result}, where,
            "return it outside of the checkpoint, or cast it");
    }
  }
  const std::vector<NodeId>& body = builder.graph().body().nodes;
  std::vector<NodeId> nodes(body.begin() + static_cast<ptrdiff_t>(first), body.end());
  std::erase_if(nodes, [&](NodeId id) { return builder.graph()[id].operands.empty(); });
  std::vector<ValueId> used = usedFromOutside(builder.graph(), nodes), cotangents = cotangentLeaves(builder, results);

  // The same nodes again, behind a barrier that waits for the cotangents.
  std::map<ValueId, ValueId> again;
  std::vector<ValueId> inputs, held;
  for (ValueId value : used) {
    std::vector<ValueId> operands{value};
    operands.insert(operands.end(), cotangents.begin(), cotangents.end());
    again[value] = builder.make("barrier", std::move(operands));
    if (builder.typeOf(value).dtype != DType::F32) continue;
    inputs.push_back(value);
    held.push_back(again[value]);
  }
  graph::cloneNodes(builder, nodes, again);
  std::vector<ValueId> recomputed;
  for (ValueId result : results) recomputed.push_back(again.contains(result) ? again[result] : result);
  std::vector<ValueId> gradients = passes::appendGradients(builder, recomputed, cotangents, held).values, wanted, flowing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].valid()) continue;
    wanted.push_back(inputs[i]);
    flowing.push_back(gradients[i]);
  }
  return bindGradients(trace, results, cotangents, wanted, flowing, true, where);
}

Tensor checkpoint(const std::function<Tensor()>& forward, Where where) {
  return checkpoint([&] { return std::vector{forward()}; }, where).front();
}

}  // namespace lockstep
