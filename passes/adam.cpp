// SPDX-License-Identifier: Apache-2.0
#include "passes/adam.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/op_def.h"
#include "passes/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr int64_t kRow = kParameterAlignment;  // flat states are seen as [total / 64, 64], so that a table of one entry a row applies

struct State {
  const Graph& in;
  const OptimizerConfig& config;
  Rewriter rewriter;
  ParameterLayout layout;
  ValueId params;

  State(const Graph& graph, const OptimizerConfig& optimizer)
      : in(graph), config(optimizer), rewriter(graph), layout(layoutParameters(graph.parameters)) {}

  Builder& b() { return rewriter.builder(); }
  Shape flat() const { return Shape{layout.total}; }
  Shape rows() const { return Shape{layout.total / kRow, kRow}; }

  ValueId state(std::string_view name) {
    ValueId leaf = b().make("state", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", flat().extents()}, {"init", 0.0}});
    b().name(leaf, std::string(name));
    return leaf;
  }
  ValueId scalarInput(std::string_view name) {
    ValueId leaf = b().make("input", {}, {{"name", std::string(name)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{}}});
    b().name(leaf, std::string(name));
    return b().broadcastTo(leaf, rows());
  }

  /// Copies the nodes, with every parameter leaf replaced by its slice of `params`.
  void copyBody() {
    if (layout.total > 0) params = state(kParameterState);
    for (NodeId id : in.body().nodes) {
      const Node& node = in[id];
      if (*node.op->name != "parameter") {
        rewriter.copy(node);
        continue;
      }
      const auto& name = node.attributes.get<std::string>("name");
      const ParameterLayout::Slot* slot = layout.find(name);
      if (slot == nullptr) internalError(fmt::format("parameter '{}' is not declared", name));
      b().setLocation(node.location);
      ValueId slice = b().make("narrow", {params}, {{"axis", int64_t{0}}, {"start", slot->offset}, {"length", slot->size}});
      ValueId view = b().reshape(slice, slot->type.shape);
      b().name(view, in[node.results[0]].name);
      rewriter.set(node.results[0], view);
    }
    b().setLocation(0);
  }

  /// One row a slot's 64 elements: 1 where weight decay applies.
  ValueId decayTable() {
    Constant table{{DType::F32, Shape{layout.total / kRow, 1}}, {}};
    for (const ParameterLayout::Slot& slot : layout.slots)
      table.data.resize(static_cast<size_t>((slot.offset + slot.size + kRow - 1) / kRow), slot.decay ? 1.0 : 0.0);
    bool all = std::all_of(table.data.begin(), table.data.end(), [](double d) { return d == 1.0; });
    if (all) return b().constant(1.0, rows());
    ConstantId id(b().graph().constants.size());
    b().mutableGraph().constants.push_back(std::move(table));
    return b().broadcastTo(b().make("dense", {}, {{"data", id}}), rows());
  }

  ValueId packedGradients() {
    std::vector<ValueId> parts;
    std::vector<int64_t> offsets;
    for (const ParameterLayout::Slot& slot : layout.slots) {
      auto output = std::find_if(in.outputs.begin(), in.outputs.end(),
                                 [&](const Output& o) { return o.kind == OutputKind::Gradient && o.name == slot.name; });
      if (output == in.outputs.end()) internalError(fmt::format("parameter '{}' has no gradient", slot.name));
      parts.push_back(rewriter[output->value]);
      offsets.push_back(slot.offset);
    }
    ValueId pack = b().make("pack", std::move(parts), {{"offsets", std::move(offsets)}, {"total", layout.total}});
    b().name(pack, "gradients");
    return b().reshape(pack, rows());
  }

  /// g * min(1, max / (norm + epsilon)), one scale for all parameters.
  ValueId clipped(ValueId g) {
    ValueId squares = b().make("sum", {b().mul(g, g)}, {{"axes", std::vector<int64_t>{0, 1}}, {"keep_dims", false}});
    ValueId norm = b().add(b().make("sqrt", {squares}), config.clip_epsilon);
    ValueId scale = b().make("min", {b().div(b().constant(config.clip_grad_norm, Shape{}), norm), b().constant(1.0, Shape{})});
    return b().mul(g, b().broadcastTo(scale, rows()));
  }

  void next(std::string_view name, ValueId old, ValueId value) {
    ValueId updated = b().make("update_slice", {old, b().reshape(value, flat())}, {{"offset", int64_t{0}}});
    b().output(OutputKind::NextState, std::string(name), updated);
  }

  /// beta * old + (1 - beta) * value. (Operands are made one a statement: the order of a call's arguments differs between compilers, and
  /// with it the order of nodes in a dump.)
  ValueId moment(ValueId old, double beta, ValueId value) {
    ValueId kept = b().mul(b().reshape(old, rows()), beta);
    ValueId added = b().mul(value, 1 - beta);
    return b().add(kept, added);
  }

  void update() {
    ValueId g = packedGradients();
    if (config.clip_grad_norm > 0) g = clipped(g);
    ValueId p = b().reshape(params, rows());
    ValueId rate = scalarInput(kRateInput);
    if (config.kind == OptimizerKind::Sgd) {
      if (config.weight_decay != 0) {
        ValueId decay = b().mul(p, config.weight_decay);
        g = b().add(g, b().mul(decay, decayTable()));
      }
      ValueId step = g;
      if (config.momentum > 0) {
        ValueId old = state(kFirstMomentState);
        ValueId velocity = b().add(b().mul(b().reshape(old, rows()), config.momentum), g);
        step = config.nesterov ? b().add(g, b().mul(velocity, config.momentum)) : velocity;
        next(kFirstMomentState, old, velocity);
      }
      next(kParameterState, params, b().sub(p, b().mul(rate, step)));
      return;
    }
    ValueId old_m = state(kFirstMomentState), old_v = state(kSecondMomentState);
    ValueId m = moment(old_m, config.beta1, g);
    ValueId v = moment(old_v, config.beta2, b().mul(g, g));
    ValueId root = b().add(b().make("sqrt", {v}), config.epsilon);
    ValueId step = b().div(b().mul(rate, m), root);
    if (config.kind == OptimizerKind::AdamW && config.weight_decay != 0) {
      ValueId factor = scalarInput(kShrinkInput);
      ValueId shrink = b().mul(factor, decayTable());
      p = b().sub(p, b().mul(shrink, p));
    }
    next(kFirstMomentState, old_m, m);
    next(kSecondMomentState, old_v, v);
    next(kParameterState, params, b().sub(p, step));
  }
};

}  // namespace

Result<Graph> adam(const Graph& graph, const OptimizerConfig& config) {
  if (graph.parameters.empty()) return fail("adam.C1", "the model has no parameters to train");
  if (config.kind == OptimizerKind::Sgd && config.nesterov && config.momentum <= 0) {
    return fail("adam.C2", "nesterov needs a momentum above 0", {}, "set momentum, for example 0.9");
  }
  State state(graph, config);
  state.copyBody();
  for (const Output& output : graph.outputs) {
    if (output.kind != OutputKind::Gradient) state.rewriter.copyOutput(output);
  }
  state.update();
  return state.rewriter.take();
}

Result<Graph> bindParameters(const Graph& graph) {
  OptimizerConfig none;
  State state(graph, none);
  state.copyBody();
  for (const Output& output : graph.outputs) state.rewriter.copyOutput(output);
  return state.rewriter.take();
}

}  // namespace lockstep::passes
