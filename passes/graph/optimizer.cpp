// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "ir/graph/op_def.h"
#include "passes/graph/bind_parameters.h"
#include "passes/graph/check_indices.h"
#include "passes/graph/update_rule.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr int64_t kRow = kParameterAlignment;  // flat states are seen as [total / 64, 64], so that a table of one entry per row applies
constexpr double kSpoiled = std::numeric_limits<float>::max();  // what a loss that is not finite leaves in a sum of gradients
constexpr double kNormalizeEpsilon = 1e-8;

enum StepScalar : int64_t { kRate, kLearningRate, kEpsilon, kApply };  // as stepScalars orders them

Shape rowsOf(int64_t elements) { return Shape{elements / kRow, kRow}; }

/// Neighbouring parameters that are trained, in elements.
struct Stretch {
  int64_t in_all = 0;      ///< offset in params and ema
  int64_t in_trained = 0;  ///< offset in the moments and gradients
  int64_t length = 0;
  std::vector<const ParameterInfo*> parameters;
};

int64_t padded(int64_t elements) { return (elements + kRow - 1) / kRow * kRow; }

std::vector<Stretch> stretchesOf(const std::vector<ParameterInfo>& parameters, const OptimizerConfig& config) {
  std::vector<Stretch> stretches;
  ParameterLayout layout = layoutParameters(parameters);
  int64_t trained = 0;
  bool adjacent = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (settingOf(config, parameters[i]).frozen) {
      adjacent = false;
      continue;
    }
    if (!adjacent) stretches.push_back({layout.slots[i].offset, trained, 0, {}});
    adjacent = true;
    int64_t size = padded(layout.slots[i].size);
    stretches.back().length += size;
    stretches.back().parameters.push_back(&parameters[i]);
    trained += size;
  }
  return stretches;
}

const UpdateRule& ruleOf(OptimizerKind kind) {
  static constexpr std::array kRules{&kAdamRule, &kAdamWRule, &kSgdRule, &kLionRule};
  return *kRules[static_cast<size_t>(kind)];
}

/// A flat state leaf and its newest version.
struct FlatState {
  std::string name;
  ValueId leaf, newest;
};

struct State {
  const Graph& in;
  const OptimizerConfig& config;
  Rewriter rewriter;
  ParameterLayout trained;
  std::unordered_map<std::string_view, const ParameterInfo*> infos;  // by name
  ValueId params, scalars;
  ValueId loss;  ///< invalid when there is none

  State(const Graph& graph, const OptimizerConfig& optimizer)
      : in(graph), config(optimizer), rewriter(graph), trained(layoutParameters(trainedParameters(graph.parameters, optimizer))) {
    for (const ParameterInfo& info : graph.parameters) infos.emplace(info.name, &info);
  }

  Builder& b() { return rewriter.builder(); }

  FlatState state(std::string_view name, int64_t elements) {
    ValueId leaf = flatState(b(), name, elements);
    return {std::string(name), leaf, leaf};
  }
  ValueId slice(ValueId flat, int64_t offset, int64_t length) {
    if (offset == 0 && length == b().shapeOf(flat).elementCount()) return flat;
    return b().make("narrow", {flat}, {{"axis", int64_t{0}}, {"start", offset}, {"length", length}});
  }
  /// The stretch of a state before this step, as rows.
  ValueId old(const FlatState& of, int64_t offset, int64_t length) { return b().reshape(slice(of.leaf, offset, length), rowsOf(length)); }
  void write(FlatState& to, int64_t offset, ValueId rows) {
    ValueId flat = b().reshape(rows, Shape{b().shapeOf(rows).elementCount()});
    to.newest = b().make("update_slice", {to.newest, flat}, {{"offset", offset}});
  }
  void finish(const FlatState& state) { b().output(OutputKind::NextState, state.name, state.newest); }

  ValueId scalar(int64_t index, const Shape& shape) {
    ValueId element = b().make("narrow", {scalars}, {{"axis", int64_t{0}}, {"start", index}, {"length", int64_t{1}}});
    return b().broadcastTo(b().reshape(element, Shape{}), shape);
  }

  // Conditions.

  ValueId isFinite(ValueId x) { return b().make("is_finite", {x}); }
  ValueId both(ValueId a, ValueId c) { return b().make("logical_and", {a, c}); }
  /// False for kSpoiled.
  ValueId isSound(ValueId sum) { return b().make("less", {sum, b().constant(kSpoiled, b().shapeOf(sum))}); }
  /// Whether the loss is finite, everywhere in a shape; invalid when nobody asks. It is tested where it is used, as a scalar that is
  /// computed once would need a dispatch and a level of its own.
  ValueId finiteLoss(const Shape& shape) {
    if (!config.skip_non_finite || !loss.valid()) return {};
    return isFinite(b().broadcastTo(loss, shape));
  }
  /// The loss where all indices are within their ranges, else infinity: who looks at the loss needs to look at nothing else.
  ValueId checkedLoss(ValueId value) {
    ValueId right;
    for (const Output& output : in.outputs) {
      if (output.kind != OutputKind::Check || !isIndexRow(output.name)) continue;
      const ValueId row = rewriter[output.value];
      const ValueId none = b().make("equal", {row, b().constant(kNoRow, b().typeOf(row))});
      right = right.valid() ? both(right, none) : none;
    }
    return chosen(right, value, b().constant(std::numeric_limits<double>::infinity(), Shape{}));
  }
  /// Whether loss and norm (if there is one) are finite; likewise.
  ValueId sound(ValueId gradient_norm, const Shape& shape) {
    ValueId finite = finiteLoss(shape);
    if (!config.skip_non_finite || !gradient_norm.valid()) return finite;
    ValueId finite_norm = isFinite(b().broadcastTo(gradient_norm, shape));
    return finite.valid() ? both(finite, finite_norm) : finite_norm;
  }
  ValueId chosen(ValueId condition, ValueId now, ValueId before) {
    return condition.valid() ? b().make("where", {condition, now, before}) : now;
  }

  /// Next versions of the input graph's own states (buffers of modules), which were made without the guard.
  void copyNextState(const Output& output, ValueId gradient_norm) {
    const Node& update = in.definition(output.value);
    ValueId leaf = rewriter[update.operands[0]], value = rewriter[update.operands[1]];
    const Shape shape = b().shapeOf(value);
    ValueId before = b().reshape(leaf, shape);
    value = chosen(sound(gradient_norm, shape), value, before);
    b().output(OutputKind::NextState, output.name, b().make("update_slice", {leaf, value}, {{"offset", int64_t{0}}}));
  }

  // Gradients.

  ValueId packed(std::vector<ValueId> parts, std::string name) {
    std::vector<int64_t> offsets;
    for (const ParameterLayout::Slot& slot : trained.slots) offsets.push_back(slot.offset);
    ValueId pack = b().make("pack", std::move(parts), {{"offsets", std::move(offsets)}, {"total", trained.total}});
    b().name(pack, std::move(name));
    return pack;
  }
  ValueId norm(ValueId g) {
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < b().shapeOf(g).rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
    ValueId squares = b().mul(g, g);
    if (!axes.empty()) squares = b().make("sum", {squares}, {{"axes", std::move(axes)}, {"keep_dims", false}});
    return b().make("sqrt", {squares});
  }
  ValueId normalized(ValueId g) {
    ValueId size = b().add(norm(g), kNormalizeEpsilon);
    return b().div(g, b().broadcastTo(size, b().shapeOf(g)));
  }
  [[nodiscard]] bool normalizes() const {
    return std::any_of(config.parameters.begin(), config.parameters.end(), [](const auto& item) { return item.second.normalize; });
  }
  [[nodiscard]] ParameterSetting settingOf(std::string_view parameter) const {
    const auto found = infos.find(parameter);
    if (found == infos.end()) internalError(fmt::format("'{}' is no parameter", parameter));
    return passes::settingOf(config, *found->second);
  }

  std::vector<ValueId> gradientParts() {
    std::unordered_map<std::string_view, ValueId> gradients;
    for (const Output& output : in.outputs) {
      if (output.kind == OutputKind::Gradient) gradients.emplace(output.name, output.value);
    }
    std::vector<ValueId> parts;
    for (const ParameterLayout::Slot& slot : trained.slots) {
      const auto gradient = gradients.find(slot.name);
      if (gradient == gradients.end()) internalError(fmt::format("parameter '{}' has no gradient", slot.name));
      parts.push_back(rewriter[gradient->second]);
    }
    return parts;
  }
  void normalizeParts(std::vector<ValueId>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (settingOf(trained.slots[i].name).normalize) parts[i] = normalized(parts[i]);
    }
  }

  /// The mean of the runs since the last update. A run whose loss is not finite leaves kSpoiled, which stays until the last run, so that
  /// the whole step is left out.
  ValueId accumulated(ValueId g) {
    FlatState sum = state(kAccumulatedState, trained.total);
    Shape shape = rowsOf(trained.total);
    ValueId before = old(sum, 0, trained.total);
    ValueId share = b().mul(g, 1.0 / static_cast<double>(config.accumulate));
    ValueId total = b().add(before, share);
    if (ValueId finite = finiteLoss(shape); finite.valid()) {
      finite = both(isSound(before), finite);
      total = chosen(finite, total, b().constant(kSpoiled, shape));
    }
    ValueId zero = b().constant(0, shape);
    ValueId last = b().make("greater", {scalar(kApply, shape), zero});
    write(sum, 0, b().make("where", {last, zero, total}));
    finish(sum);
    return total;
  }

  /// Of all trained parameters, as rows.
  struct Gradients {
    ValueId rows;
    ValueId sum;    ///< as runs left it, before clipping; invalid with one run per step
    ValueId norm;   ///< before clipping by it; invalid when nobody asks
    ValueId scale;  ///< of clipping, 0 where the loss or the norm is not finite; invalid without a norm
  };
  Gradients gradients() {
    std::vector<ValueId> parts = gradientParts();
    if (config.accumulate == 1) normalizeParts(parts);
    Gradients g{b().reshape(packed(std::move(parts), "gradients"), rowsOf(trained.total)), {}, {}, {}};
    if (config.accumulate > 1) g.rows = g.sum = accumulated(g.rows);
    if (config.accumulate > 1 && normalizes()) {
      ValueId flat = b().reshape(g.sum, Shape{trained.total});
      parts.clear();
      for (const ParameterLayout::Slot& slot : trained.slots) parts.push_back(slice(flat, slot.offset, slot.size));
      normalizeParts(parts);
      g.rows = b().reshape(packed(std::move(parts), "normalized"), rowsOf(trained.total));
    }
    // A limit by value makes a number of an infinity.
    if (config.check_gradients && config.clip_grad_norm <= 0) checkNorm(g);
    if (config.clip_grad_value > 0) {
      ValueId below = b().make("min", {g.rows, b().constant(config.clip_grad_value, b().shapeOf(g.rows))});
      g.rows = b().make("max", {below, b().constant(-config.clip_grad_value, b().shapeOf(g.rows))});
    }
    if (config.clip_grad_norm > 0) clipNorm(g);
    if (g.norm.valid()) b().output(OutputKind::Result, std::string(kGradientNorm), g.norm);
    return g;
  }
  ValueId closedUnlessSound(ValueId gradient_norm, ValueId scale) {
    ValueId finite = sound(gradient_norm, Shape{});
    return finite.valid() ? b().make("where", {finite, scale, b().constant(0, Shape{})}) : scale;
  }
  /// A scale as clipping has it: one number that the update reads in place of loss and norm, of which its kernel may bind too few.
  void checkNorm(Gradients& g) {
    g.norm = norm(g.rows);
    g.scale = closedUnlessSound(g.norm, b().constant(1, Shape{}));
  }
  void clipNorm(Gradients& g) {
    g.norm = norm(g.rows);
    ValueId limit = b().constant(config.clip_grad_norm, Shape{});
    ValueId ratio = b().div(limit, b().add(g.norm, config.clip_epsilon));
    g.scale = closedUnlessSound(g.norm, b().make("min", {ratio, b().constant(1, Shape{})}));
    g.rows = b().mul(g.rows, b().broadcastTo(g.scale, rowsOf(trained.total)));
  }
  ValueId partOf(ValueId rows, const Stretch& stretch) {
    ValueId flat = b().reshape(rows, Shape{trained.total});
    return b().reshape(slice(flat, stretch.in_trained, stretch.length), rowsOf(stretch.length));
  }

  // The update.

  /// One value per parameter in a shape of rows; invalid where all are `neutral`.
  ValueId perParameter(const Stretch& stretch, double ParameterSetting::* member, double neutral) {
    Constant table{{DType::F32, Shape{stretch.length / kRow, 1}}, {}};
    for (const ParameterInfo* parameter : stretch.parameters) {
      size_t rows = static_cast<size_t>(padded(parameter->type.shape.elementCount()) / kRow);
      table.data.insert(table.data.end(), rows, passes::settingOf(config, *parameter).*member);
    }
    double first = table.data.front();
    if (std::all_of(table.data.begin(), table.data.end(), [&](double d) { return d == first; }))
      return first == neutral ? ValueId() : b().constant(first, rowsOf(stretch.length));
    ConstantId id(b().graph().constants.size());
    b().mutableGraph().constants.push_back(std::move(table));
    return b().broadcastTo(b().make("dense", {}, {{"data", id}}), rowsOf(stretch.length));
  }

  /// Whether this run's update counts; invalid: always.
  ValueId gate(const Gradients& g, const Stretch& stretch) {
    Shape shape = rowsOf(stretch.length);
    ValueId open;
    if (config.skip_non_finite && g.scale.valid()) {
      ValueId scale = b().broadcastTo(g.scale, shape);
      open = b().make("greater", {scale, b().constant(0, shape)});
    } else {
      open = finiteLoss(shape);
    }
    if (config.accumulate == 1) return open;
    ValueId last = b().make("greater", {scalar(kApply, shape), b().constant(0, shape)});
    if (!open.valid()) return last;
    open = both(last, open);
    return both(open, isSound(partOf(g.sum, stretch)));
  }

  void update() {
    ValueId leaf = b().make("input", {}, {{"name", std::string(kScalarsInput)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{4}}});
    b().name(leaf, std::string(kScalarsInput));
    scalars = leaf;
    const Gradients g = gradients();
    // Of several runs a step each updates buffers by itself, while the norm is of all so far.
    for (const Output& output : in.outputs) {
      if (output.kind == OutputKind::NextState) copyNextState(output, config.accumulate == 1 ? g.norm : ValueId());
    }
    const UpdateRule& rule = ruleOf(config.kind);
    FlatState parameters{std::string(kParameterState), params, params};
    std::vector<FlatState> moments;
    for (std::string_view name : {kFirstMomentState, kSecondMomentState}) {
      if (moments.size() < rule.moments(config)) moments.push_back(state(name, trained.total));
    }
    std::optional<FlatState> average;
    if (config.ema_decay > 0) average = state(kAverageState, b().shapeOf(params).elementCount());

    for (const Stretch& stretch : stretchesOf(in.parameters, config)) {
      Shape shape = rowsOf(stretch.length);
      UpdateContext context{.builder = b(),
                            .config = config,
                            .parameter = {},
                            .gradient = {},
                            .moments = {},
                            .rate = {},
                            .lr = {},
                            .epsilon = {},
                            .decay = {}};
      context.parameter = old(parameters, stretch.in_all, stretch.length);
      context.gradient = partOf(g.rows, stretch);
      for (const FlatState& moment : moments) context.moments.push_back(old(moment, stretch.in_trained, stretch.length));
      context.rate = scalar(kRate, shape);
      context.lr = scalar(kLearningRate, shape);
      context.epsilon = scalar(kEpsilon, shape);
      if (ValueId factor = perParameter(stretch, &ParameterSetting::lr_factor, 1); factor.valid()) {
        context.rate = b().mul(context.rate, factor);
        context.lr = b().mul(context.lr, factor);
      }
      context.decay = perParameter(stretch, &ParameterSetting::weight_decay, 0);
      Updated updated = rule.apply(context);

      ValueId open = gate(g, stretch);
      ValueId parameter = chosen(open, updated.parameter, context.parameter);
      for (size_t i = 0; i < moments.size(); ++i)
        write(moments[i], stretch.in_trained, chosen(open, updated.moments[i], context.moments[i]));
      write(parameters, stretch.in_all, parameter);
      if (!average) continue;
      ValueId before = old(*average, stretch.in_all, stretch.length);
      ValueId moved = movingAverage(b(), before, config.ema_decay, updated.parameter);
      write(*average, stretch.in_all, chosen(open, moved, before));
    }
    for (const FlatState& moment : moments) finish(moment);
    finish(parameters);
    if (average) finish(*average);
  }
};

}  // namespace

Result<Graph> optimizer(const Graph& graph, const OptimizerConfig& config) {
  if (trainedParameters(graph.parameters, config).empty())
    return fail("optimizer.C1", "the model has no parameters to train", {}, "declare parameters, or let a group freeze only some of them");
  if (config.kind == OptimizerKind::Sgd && config.nesterov && config.momentum <= 0) {
    return fail("optimizer.C2", "nesterov needs a momentum above 0", {}, "set momentum, for example 0.9");
  }
  if (config.accumulate < 1) return fail("optimizer.C3", fmt::format("accumulate is {}, but must be at least 1", config.accumulate));
  State state(graph, config);
  for (const auto& [name, setting] : config.parameters) {
    if (!state.infos.contains(name)) return fail("optimizer.C4", fmt::format("there is a setting for '{}', but no such parameter", name));
  }
  state.params = copyBound(state.rewriter, graph, kParameterState);
  for (const Output& output : graph.outputs) {
    if (output.kind == OutputKind::Loss) {
      const ValueId traced = state.rewriter[output.value];
      state.loss = config.skip_non_finite ? state.checkedLoss(traced) : traced;
      state.b().output(output.kind, output.name, state.loss);
    } else if (output.kind != OutputKind::NextState && output.kind != OutputKind::Gradient) {
      state.rewriter.copyOutput(output);
    }
  }
  state.update();
  return state.rewriter.take();
}

}  // namespace lockstep::passes
