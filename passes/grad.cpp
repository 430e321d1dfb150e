// SPDX-License-Identifier: Apache-2.0
#include "passes/grad.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;

namespace {

struct State {
  Builder& builder;
  std::vector<ValueId> cotangents;  // by value; invalid = nothing flows back

  void accumulate(ValueId value, ValueId cotangent) {
    ValueId& sum = cotangents[value.index()];
    sum = sum.valid() ? builder.add(sum, cotangent) : cotangent;
  }

  /// Which values depend on one of `wrt`: gradients towards others are never built.
  [[nodiscard]] std::vector<bool> dependents(std::span<const ValueId> wrt) const {
    const Graph& graph = builder.graph();
    std::vector<bool> depends(graph.values.size(), false);
    for (ValueId value : wrt) depends[value.index()] = true;
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return depends[operand.index()]; });
      for (ValueId result : node.results) depends[result.index()] = depends[result.index()] || any;
    }
    return depends;
  }

  void backward(const Node& node, const std::vector<bool>& depends) {
    std::vector<ValueId> incoming;
    bool any = false;
    for (ValueId result : node.results) {
      incoming.push_back(cotangents[result.index()]);
      any = any || incoming.back().valid();
    }
    const auto* function = std::get_if<GradientFn>(&*node.op->gradient);
    if (!any || function == nullptr || node.operands.empty()) return;
    if (std::none_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return depends[operand.index()]; })) return;
    builder.setLocation(node.location);
    std::vector<ValueId> outgoing = (*function)({builder, node, node.operands, node.results, incoming});
    for (size_t i = 0; i < outgoing.size(); ++i) {
      if (outgoing[i].valid() && depends[node.operands[i].index()]) accumulate(node.operands[i], outgoing[i]);
    }
  }
};

}  // namespace

std::vector<ValueId> appendGradients(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> seeds,
                                     std::span<const ValueId> wrt) {
  State state{builder, std::vector<ValueId>(builder.graph().values.size())};
  std::vector<bool> depends = state.dependents(wrt);
  for (size_t i = 0; i < outputs.size(); ++i) state.accumulate(outputs[i], seeds[i]);
  const std::vector<NodeId> nodes = builder.graph().body().nodes;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Node node = builder.graph()[nodes[i]];  // a copy: the builder grows
    state.backward(node, depends);
  }
  builder.setLocation(0);
  std::vector<ValueId> gradients;
  for (ValueId value : wrt) gradients.push_back(state.cotangents[value.index()]);
  return gradients;
}

Result<Graph> grad(const Graph& graph, const GradConfig& config) {
  const Output* loss = nullptr;
  for (const Output& output : graph.outputs) {
    if (output.kind != OutputKind::Loss) continue;
    if (loss != nullptr) return fail("grad.C1", "the graph has more than one loss");
    loss = &output;
  }
  if (loss == nullptr) return fail("grad.C1", "the graph has no loss to differentiate", {}, "mark a scalar as the loss");
  const TensorType& type = graph.typeOf(loss->value);
  if (type.dtype != DType::F32 || type.shape.rank() != 0) {
    return fail("grad.C2", fmt::format("the loss is {}, wanted a scalar f32", toString(type)), {}, "reduce it with sum or mean");
  }

  std::vector<std::string> names = config.wrt;
  if (names.empty()) {
    for (const ParameterInfo& parameter : graph.parameters) names.push_back(parameter.name);
  }
  std::vector<ValueId> leaves;
  for (const std::string& name : names) {
    ValueId found;
    for (NodeId id : graph.body().nodes) {
      const std::string* leaf = leafName(graph[id]);
      if (leaf != nullptr && *leaf == name) found = graph[id].results[0];
    }
    if (!found.valid()) return fail("grad.C3", fmt::format("'{}' is no leaf of the graph", name));
    leaves.push_back(found);
  }

  Builder builder(graph);
  std::vector<ValueId> outputs{loss->value}, seeds{builder.constant(1.0, Shape{})};
  std::vector<ValueId> gradients = appendGradients(builder, outputs, seeds, leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!gradients[i].valid()) gradients[i] = builder.constant(0.0, Shape(graph.shapeOf(leaves[i])));
    builder.output(OutputKind::Gradient, names[i], gradients[i]);
  }
  return builder.take();
}

}  // namespace lockstep::passes
