// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/grad.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/graph/autocast.h"
#include "passes/graph/loop_gradient.h"
#include "passes/graph/loss_scale.h"

namespace lockstep::passes {

using namespace graph;

namespace {

struct State {
  Builder& builder;
  std::vector<ValueId> cotangents;  // by value; invalid = nothing flows back
  std::vector<NodeId> stops{};      // by value: what stops the way from it to an output; invalid = nothing
  std::vector<NodeId> unknown{};    // by value: the op on such a way whose gradient nobody has given
  std::vector<bool> crosses{};      // by value that is no f32: an output depends on it
  std::vector<bool> recomputed{};   // by value: its gradient flows elsewhere, through nodes that repeat those that make it
  std::vector<ValueId> copies;      // by value: its rounded copy; invalid = none

  State(Builder& b, size_t values)
      : builder(b),
        cotangents(values),
        stops(values),
        unknown(values),
        crosses(values, false),
        recomputed(values, false),
        copies(roundedCopies(b.graph())) {}

  void accumulate(ValueId value, ValueId cotangent) {
    ValueId& sum = cotangents[value.index()];
    sum = sum.valid() ? builder.add(sum, cotangent) : cotangent;
  }

  /// Which values depend on one of `wrt`: gradients towards others are never built.
  [[nodiscard]] std::vector<bool> dependents(std::span<const ValueId> wrt, size_t first) const {
    const Graph& graph = builder.graph();
    std::vector<bool> depends(graph.values.size(), false);
    for (ValueId value : wrt) depends[value.index()] = true;
    for (NodeId id : std::span(graph.body().nodes).subspan(first)) {
      const Node& node = graph[id];
      bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return depends[operand.index()]; });
      for (ValueId result : node.results) depends[result.index()] = depends[result.index()] || any;
    }
    return depends;
  }

  [[nodiscard]] bool isFloat(ValueId value) const { return graph::isFloat(builder.typeOf(value).dtype); }
  void stop(ValueId value, NodeId by) {
    if (!stops[value.index()].valid()) stops[value.index()] = by;
  }
  /// An output depends on the operand through `node`, which passes no gradient to it.
  void cross(ValueId operand, NodeId node) {
    if (isFloat(operand)) {
      stop(operand, node);
    } else {
      crosses[operand.index()] = true;
    }
  }

  /// What stops the ways through this node.
  void passStops(NodeId id, const Node& node, bool flows) {
    const auto* none = std::get_if<NotDifferentiable>(&*node.op->gradient);
    if (none != nullptr && none->is_meant) return;
    bool crossed = flows && none != nullptr, repeated = false;
    for (ValueId result : node.results) {
      crossed = crossed || crosses[result.index()] || (recomputed[result.index()] && none != nullptr);
      repeated = repeated || recomputed[result.index()];
    }
    const Attribute* again = node.attributes.find("recomputed");
    if (flows && again != nullptr && std::get<bool>(*again)) {
      for (size_t i = 0; i < node.results.size(); ++i) recomputed[node.operands[i].index()] = true;
    }
    for (ValueId operand : node.operands) {
      NodeId& by = unknown[operand.index()];
      if (crossed && none != nullptr && none->is_unknown && isFloat(operand)) by = id;
      for (ValueId result : node.results) {
        if (!by.valid() && isFloat(operand)) by = unknown[result.index()];
      }
      if (crossed || (repeated && !isFloat(operand))) cross(operand, id);
      if (repeated && !crossed) recomputed[operand.index()] = true;
      for (ValueId result : node.results) {
        if (stops[result.index()].valid()) stop(operand, stops[result.index()]);
      }
    }
  }

  /// Values as a gradient reads them. Ops that compare what they read with what they made (a maximum) need both as they were.
  [[nodiscard]] std::vector<ValueId> kept(const Node& node, const std::vector<ValueId>& values, bool results) const {
    const bool by_element = std::holds_alternative<ElementLowering>(*node.op->lower);
    const bool composed = std::holds_alternative<DecomposeLowering>(*node.op->lower);
    std::vector<ValueId> read = values;
    if (!by_element && !(composed && results)) return read;
    for (ValueId& value : read) {
      if (copies[value.index()].valid()) value = copies[value.index()];
    }
    return read;
  }

  /// What flows back into a product of rounded operands is rounded, too, so that both of its gradients read it packed.
  void roundIncoming(const Node& node, std::vector<ValueId>& incoming) {
    const DType low = node.op->mixed == MixedRole::Product ? roundedType(builder.graph(), node) : DType::F32;
    if (low == DType::F32) return;
    for (ValueId& cotangent : incoming) {
      if (!cotangent.valid()) continue;
      const Node& maker = builder.graph().definition(cotangent);
      if (maker.operands.size() == 1 && builder.typeOf(maker.operands[0]).dtype == low) continue;  // it has been
      const ValueId rounded = builder.make("cast", {cotangent}, {{"dtype", low}});
      cotangent = builder.make("cast", {rounded}, {{"dtype", DType::F32}, {"rounds_gradient", true}});
    }
  }

  void backward(NodeId id, const Node& node, const std::vector<bool>& depends) {
    if (std::none_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return depends[operand.index()]; })) return;
    std::vector<ValueId> incoming;
    bool any = false;
    for (ValueId result : node.results) {
      incoming.push_back(cotangents[result.index()]);
      any = any || incoming.back().valid();
    }
    passStops(id, node, any);
    const auto* function = std::get_if<GradientFn>(&*node.op->gradient);
    if (any && std::holds_alternative<ByDecomposition>(*node.op->gradient)) return throughDecomposition(node, incoming, depends);
    if (any && std::holds_alternative<ThroughBody>(*node.op->gradient)) return throughLoop(id, node, incoming, depends);
    if (!any || function == nullptr) return;
    builder.setLocation(node.location);
    const size_t first = builder.graph().body().nodes.size(), first_value = builder.graph().values.size();
    roundIncoming(node, incoming);
    const std::vector<ValueId> operands = kept(node, node.operands, false), results = kept(node, node.results, true);
    std::vector<ValueId> outgoing = (*function)({builder, node, operands, results, incoming});
    for (size_t i = 0; i < outgoing.size(); ++i) {
      if (outgoing[i].valid() && depends[node.operands[i].index()]) accumulate(node.operands[i], outgoing[i]);
      if (!outgoing[i].valid() && !isFloat(node.operands[i])) cross(node.operands[i], id);
    }
    keepMasks(first, first_value);
  }

  void throughLoop(NodeId id, const Node& node, const std::vector<ValueId>& incoming, const std::vector<bool>& depends) {
    builder.setLocation(node.location);
    std::vector<bool> wanted;
    for (const ValueId operand : node.operands) wanted.push_back(depends[operand.index()] && isFloat(operand));
    const LoopGradient gradient = loopGradient(builder, node, incoming, wanted);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (gradient.operands[i].valid()) accumulate(node.operands[i], gradient.operands[i]);
      if (gradient.stopped[i]) cross(node.operands[i], id);
    }
  }

  /// The ops that the node stands for are made once more, and what flows back flows through them.
  void throughDecomposition(const Node& node, const std::vector<ValueId>& incoming, const std::vector<bool>& depends) {
    builder.setLocation(node.location);
    const size_t first = builder.graph().body().nodes.size();
    const auto& facet = std::get<ByDecomposition>(*node.op->gradient);
    const auto decompose = facet.decompose != nullptr ? facet.decompose : std::get<DecomposeLowering>(*node.op->lower).decompose;
    const std::vector<ValueId> made = decompose(builder, node, node.operands);
    std::vector<ValueId> outputs, seeds, wrt;
    for (size_t i = 0; i < made.size(); ++i) {
      if (!incoming[i].valid()) continue;
      outputs.push_back(made[i]);
      seeds.push_back(incoming[i]);
    }
    for (const ValueId operand : node.operands) {
      if (depends[operand.index()] && std::ranges::find(wrt, operand) == wrt.end()) wrt.push_back(operand);
    }
    const AppendedGradients gradients = appendGradients(builder, outputs, seeds, wrt, first);
    for (size_t i = 0; i < wrt.size(); ++i) {
      if (gradients.values[i].valid()) accumulate(wrt[i], gradients.values[i]);
    }
  }

  /// What the nodes from `first` on compare becomes a constant, and so do the integers and truth values in front of `first_value` that they
  /// take.
  void keepMasks(size_t first, size_t first_value) {
    Graph& graph = builder.mutableGraph();
    for (size_t i = first; i < graph.body().nodes.size(); ++i) {
      const NodeId id = graph.body().nodes[i];
      const auto* none = std::get_if<NotDifferentiable>(&*graph[id].op->gradient);
      if (none != nullptr && none->is_meant) continue;
      for (size_t k = 0; k < graph[id].operands.size(); ++k) {
        const ValueId operand = graph[id].operands[k];
        if (isFloat(operand) ? none == nullptr : operand.index() >= first_value) continue;
        const ValueId constant = builder.make("stop_gradient", {operand}, {{"of_gradient", true}});
        graph.nodes[id.index()].operands[k] = constant;
        std::vector<NodeId>& nodes = graph.regions.front().nodes;
        std::rotate(nodes.begin() + static_cast<std::ptrdiff_t>(i++), nodes.end() - 1, nodes.end());
      }
    }
  }
};

/// "'argmax'", "kernel 'scale'"
std::string describeOp(const Node& node) {
  if (node.attributes.find("label") == nullptr) return fmt::format("'{}'", *node.op->name);
  return fmt::format("{} '{}'", *node.op->name, node.attributes.get<std::string>("label"));
}

std::string reasonOf(const Graph& graph, const Node& node) {
  if (std::holds_alternative<ThroughBody>(*node.op->gradient)) return "its body stops it, or writes rows of a carry in place";
  if (const auto* none = std::get_if<NotDifferentiable>(&*node.op->gradient)) return std::string(none->reason);
  auto integer = std::ranges::find_if(node.results, [&](ValueId result) { return !graph::isFloat(graph.typeOf(result).dtype); });
  return fmt::format("its result is {}", toString(graph.typeOf(integer == node.results.end() ? node.results.front() : *integer).dtype));
}

/// "parameter 'a' gets", "parameters 'a', 'b' and 3 more get"
std::string describeLeaves(const std::vector<std::string>& names, std::string_view kind) {
  constexpr size_t kNamed = 3;
  if (names.size() == 1) return fmt::format("{} '{}' gets", kind, names.front());
  std::string text = fmt::format("{}s", kind);
  for (size_t i = 0; i < names.size() && i < kNamed; ++i) {
    const bool last = i + 1 == names.size();
    text += fmt::format("{} '{}'", i == 0 ? "" : last ? " and" : ",", names[i]);
  }
  if (names.size() > kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
  return text + " get";
}

}  // namespace

AppendedGradients appendGradients(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> seeds,
                                  std::span<const ValueId> wrt, size_t first) {
  State state(builder, builder.graph().values.size());
  std::vector<bool> depends = state.dependents(wrt, first);
  for (size_t i = 0; i < outputs.size(); ++i) state.accumulate(outputs[i], seeds[i]);
  const std::vector<NodeId> nodes = builder.graph().body().nodes;
  for (size_t i = nodes.size(); i-- > first;) {
    const Node node = builder.graph()[nodes[i]];  // a copy: the builder grows
    state.backward(nodes[i], node, depends);
  }
  builder.setLocation(0);
  AppendedGradients gradients;
  for (ValueId value : wrt) {
    gradients.values.push_back(state.cotangents[value.index()]);
    const NodeId unknown = state.unknown[value.index()];
    gradients.stops.push_back(unknown.valid() || gradients.values.back().valid() ? unknown : state.stops[value.index()]);
  }
  return gradients;
}

Diagnostic describeStop(const Graph& graph, std::string_view what, NodeId stop) {
  const Node& node = graph[stop];
  const auto* none = std::get_if<NotDifferentiable>(&*node.op->gradient);
  const bool written = none != nullptr && none->is_unknown;
  return {.code = "grad.C5",
          .message = fmt::format(fmt::runtime(written ? "{} no gradient through {} ({})" : "{} no gradient: {} stops it ({})"), what,
                                 describeOp(node), reasonOf(graph, node)),
          .where = node.location == 0 ? Location{} : graph.locations[node.location - 1],
          .notes = {},
          .remedy = written ? "give the kernel a .gradient, or say that it has none with stop_gradient"
                            : "compute it in a way that has a gradient, or say that it has none with stop_gradient"};
}

namespace {

/// One diagnostic for each op that stops leaves.
Failure stopped(const Graph& graph, const std::vector<ValueId>& leaves, const std::vector<std::string>& names,
                const std::vector<NodeId>& stops) {
  struct Stopped {
    std::vector<std::string> names;
    std::string_view kind;
  };
  std::map<NodeId, Stopped> by_op;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!stops[i].valid()) continue;
    by_op[stops[i]].names.push_back(names[i]);
    by_op[stops[i]].kind = *graph.definition(leaves[i]).op->name;
  }
  Failure failure;
  for (NodeId id : graph.body().nodes) {
    const auto found = by_op.find(id);
    if (found == by_op.end()) continue;
    failure.diagnostics.push_back(describeStop(graph, describeLeaves(found->second.names, found->second.kind), id));
  }
  return failure;
}

}  // namespace

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
  std::unordered_map<std::string_view, ValueId> by_name;
  for (NodeId id : graph.body().nodes) {
    if (const std::string* leaf = leafName(graph[id])) by_name[*leaf] = graph[id].results[0];
  }
  std::vector<ValueId> leaves;
  for (const std::string& name : names) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) return fail("grad.C3", fmt::format("'{}' is no leaf of the graph", name));
    leaves.push_back(found->second);
  }

  Builder builder(graph);
  std::vector<ValueId> outputs{loss->value};
  std::vector<ValueId> seeds{config.loss_scale ? lossScale(builder, *config.loss_scale) : builder.constant(1.0, Shape{})};
  AppendedGradients gradients = appendGradients(builder, outputs, seeds, leaves);
  if (config.refuses_stops) {
    if (Failure failure = stopped(graph, leaves, names, gradients.stops); !failure.diagnostics.empty()) return failure;
  }
  if (config.trains && !leaves.empty() && std::ranges::none_of(gradients.values, &ValueId::valid)) {
    const Node& made = graph.definition(loss->value);
    return fail("grad.C6", "the loss reaches no parameter that is trained",
                made.location == 0 ? Location{} : graph.locations[made.location - 1],
                "compute the loss from the model; stop_gradient and operations whose gradient is 0 (round, sign) end the way, too");
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    ValueId gradient = gradients.values[i];
    if (!gradient.valid()) gradient = builder.constant(0.0, Shape(graph.shapeOf(leaves[i])));
    builder.output(OutputKind::Gradient, names[i], gradient);
  }
  return builder.take();
}

}  // namespace lockstep::passes
