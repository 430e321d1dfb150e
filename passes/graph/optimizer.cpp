// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "passes/graph/bind_parameters.h"
#include "passes/graph/flat_states.h"
#include "passes/graph/loss_scale.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/step_guard.h"
#include "passes/graph/trained_rows.h"
#include "passes/graph/update_rule.h"

namespace lockstep::passes {

using namespace graph;

namespace {

constexpr double kNormalizeEpsilon = 1e-8;

enum StepScalar : int64_t { kRate, kLearningRate, kEpsilon, kApply };  // as stepScalars orders them

/// Neighbouring parameters that are trained, in elements.
struct Stretch {
  int64_t in_all = 0;      ///< offset in params and ema
  int64_t in_trained = 0;  ///< offset in the moments and gradients
  int64_t length = 0;
  std::vector<const ParameterInfo*> parameters;
};

std::vector<Stretch> stretchesOf(const std::vector<ParameterInfo>& parameters, const OptimizerConfig& config) {
  std::vector<Stretch> stretches;
  ParameterLayout layout = layoutParameters(parameters);
  int64_t trained = 0;
  bool adjacent = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSetting setting = settingOf(config, parameters[i]);
    if (setting.frozen) {
      adjacent = false;
      continue;
    }
    // One that is trained in part is alone.
    if (!adjacent || !setting.rows.empty()) stretches.push_back({layout.slots[i].offset, trained, 0, {}});
    adjacent = setting.rows.empty();
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

/// Of all trained parameters, as rows.
struct Gradients {
  ValueId rows;
  ValueId sum;    ///< as runs left it, before clipping; invalid with one run per step
  ValueId norm;   ///< before clipping by it; invalid when nobody asks
  ValueId scale;  ///< of clipping, 0 where the step does not count; invalid without a norm
  ValueId found;  ///< the norm as it was before any clipping; invalid without loss scaling
};

/// The work on one graph. update() is its outline.
class Training {
 public:
  Training(const Graph& graph, const OptimizerConfig& config)
      : in_(graph),
        config_(config),
        rewriter_(graph),
        guard_(graph, rewriter_, config),
        trained_(layoutParameters(trainedParameters(graph.parameters, config))) {
    for (const ParameterInfo& info : graph.parameters) infos_.emplace(info.name, &info);
  }

  Graph run() {
    params_ = copyBound(rewriter_, in_, kParameterState);
    for (const Output& output : in_.outputs) {
      if (output.kind == OutputKind::Loss) {
        b().output(output.kind, output.name, guard_.watch(rewriter_[output.value]));
      } else if (output.kind != OutputKind::NextState && output.kind != OutputKind::Gradient) {
        rewriter_.copyOutput(output);
      }
    }
    scalars_ = b().make("input", {}, {{"name", std::string(kScalarsInput)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{4}}});
    b().name(scalars_, std::string(kScalarsInput));
    const Gradients gradients = gather();
    // Of several runs a step each updates buffers by itself, while the norm is of all so far.
    for (const Output& output : in_.outputs) {
      if (output.kind == OutputKind::NextState) copyNextState(output, config_.accumulate == 1 ? gradients.norm : ValueId());
    }
    update(gradients);
    if (config_.loss_scaling) moveLossScale(gradients);
    return rewriter_.take();
  }

 private:
  Builder& b() { return rewriter_.builder(); }

  ValueId scalar(int64_t index, const Shape& shape) {
    const ValueId element = b().make("narrow", {scalars_}, {{"axis", int64_t{0}}, {"start", index}, {"length", int64_t{1}}});
    return b().broadcastTo(b().reshape(element, Shape{}), shape);
  }
  /// Whether it is the last run of its step.
  ValueId isLast(const Shape& shape) { return b().make("greater", {scalar(kApply, shape), b().constant(0, shape)}); }

  /// Next versions of the graph's own states (buffers of modules), which were made without the guard.
  void copyNextState(const Output& output, ValueId norm) {
    const Node& update = in_.definition(output.value);
    const ValueId leaf = rewriter_[update.operands[0]];
    ValueId value = rewriter_[update.operands[1]];
    const Shape shape = b().shapeOf(value);
    const ValueId old = b().reshape(leaf, shape);
    value = guard_.chosen(guard_.isFinite(norm, shape), value, old);
    b().output(OutputKind::NextState, output.name, b().make("update_slice", {leaf, value}, {{"offset", int64_t{0}}}));
  }

  // Gradients: packed, then averaged over runs, normalised and clipped.

  Gradients gather() {
    std::vector<ValueId> parts = gradientParts();
    if (config_.accumulate == 1) normalize(parts);
    Gradients g{b().reshape(packed(std::move(parts), "gradients"), rowsOf(trained_.total)), {}, {}, {}, {}};
    // Normalised ones have been divided.
    if (config_.accumulate > 1 || !normalizes()) g.rows = unscaled(g.rows);
    if (config_.accumulate > 1) g.rows = g.sum = accumulated(g.rows);
    if (config_.accumulate > 1 && normalizes()) g.rows = normalizedSum(g.sum);
    // A limit by value makes a number of an infinity, so the norm is taken before it where it only checks.
    if (config_.check_gradients && config_.clip_grad_norm <= 0) checkNorm(g);
    if (config_.loss_scaling) g.found = norm(g.rows);
    if (config_.clip_grad_value > 0) {
      const ValueId below = b().make("min", {g.rows, b().constant(config_.clip_grad_value, b().shapeOf(g.rows))});
      g.rows = b().make("max", {below, b().constant(-config_.clip_grad_value, b().shapeOf(g.rows))});
    }
    if (config_.clip_grad_norm > 0) clipNorm(g);
    if (g.found.valid()) {
      g.scale = guard_.closedScale(g.found, g.scale);
      // Limits by value hide an overflow from the norm that follows them.
      g.norm = guard_.chosen(b().make("is_finite", {g.found}), g.norm, g.found);
    }
    if (g.norm.valid()) b().output(OutputKind::Result, std::string(kGradientNorm), g.norm);
    return g;
  }

  /// Without the factor that loss scaling gave them.
  ValueId unscaled(ValueId gradients) {
    if (!config_.loss_scaling) return gradients;
    const ValueId inverse = b().div(b().constant(1, Shape{}), b().reshape(lossScaleLeaf(), Shape{}));
    return b().mul(gradients, b().broadcastTo(inverse, b().shapeOf(gradients)));
  }
  ValueId lossScaleLeaf() {
    const auto& nodes = in_.body().nodes;
    const auto found = std::ranges::find_if(nodes, [&](NodeId id) {
      const std::string* name = leafName(in_[id]);
      return name != nullptr && *name == kLossScaleState;
    });
    if (found == nodes.end()) internalError("the gradients have no loss scale");
    return rewriter_[in_[*found].results[0]];
  }
  void moveLossScale(const Gradients& g) {
    const ValueId zero = b().constant(0, Shape{});
    updateLossScale(b(), *config_.loss_scaling,
                    {.leaf = lossScaleLeaf(),
                     .norm = g.found,
                     .open = b().make("greater", {g.scale, zero}),
                     .count = config_.accumulate > 1 ? isLast(Shape{}) : ValueId()});
  }

  /// Of each trained parameter, in the order of the layout.
  std::vector<ValueId> gradientParts() {
    std::unordered_map<std::string_view, ValueId> gradients;
    for (const Output& output : in_.outputs) {
      if (output.kind == OutputKind::Gradient) gradients.emplace(output.name, output.value);
    }
    std::vector<ValueId> parts;
    for (const ParameterLayout::Slot& slot : trained_.slots) {
      const auto gradient = gradients.find(slot.name);
      if (gradient == gradients.end()) internalError(fmt::format("parameter '{}' has no gradient", slot.name));
      parts.push_back(ofTrainedRows(slot, rewriter_[gradient->second]));
    }
    return parts;
  }
  /// A gradient that is 0 where its parameter stays as it is.
  ValueId ofTrainedRows(const ParameterLayout::Slot& slot, ValueId gradient) {
    const std::vector<RowRange> rows = settingOf(slot.name).rows;
    if (rows.empty()) return gradient;
    const Shape& shape = slot.type.shape;
    return b().make("where", {isTrained(b(), shape, rows, shape), gradient, b().constant(0, b().typeOf(gradient))});
  }
  ValueId packed(std::vector<ValueId> parts, std::string name) {
    std::vector<int64_t> offsets;
    for (const ParameterLayout::Slot& slot : trained_.slots) offsets.push_back(slot.offset);
    const ValueId pack = b().make("pack", std::move(parts), {{"offsets", std::move(offsets)}, {"total", trained_.total}});
    b().name(pack, std::move(name));
    return pack;
  }

  [[nodiscard]] ParameterSetting settingOf(std::string_view parameter) const {
    const auto found = infos_.find(parameter);
    if (found == infos_.end()) internalError(fmt::format("'{}' is no parameter", parameter));
    return passes::settingOf(config_, *found->second);
  }
  [[nodiscard]] bool normalizes() const {
    return std::any_of(config_.parameters.begin(), config_.parameters.end(), [](const auto& item) { return item.second.normalize; });
  }
  void normalize(std::vector<ValueId>& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      // By the scale, too: the guard against gradients of 0 is no multiple of it.
      if (config_.accumulate == 1 && normalizes()) parts[i] = unscaled(parts[i]);
      if (!settingOf(trained_.slots[i].name).normalize) continue;
      const ValueId size = b().add(norm(parts[i]), kNormalizeEpsilon);
      parts[i] = b().div(parts[i], b().broadcastTo(size, b().shapeOf(parts[i])));
    }
  }
  /// Each parameter's part of the sum normalised, where the settings say so.
  ValueId normalizedSum(ValueId sum) {
    const ValueId flat = b().reshape(sum, Shape{trained_.total});
    std::vector<ValueId> parts;
    for (const ParameterLayout::Slot& slot : trained_.slots) parts.push_back(slice(b(), flat, slot.offset, slot.size));
    normalize(parts);
    return b().reshape(packed(std::move(parts), "normalized"), rowsOf(trained_.total));
  }
  ValueId norm(ValueId g) {
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < b().shapeOf(g).rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
    ValueId squares = b().mul(g, g);
    if (!axes.empty()) squares = b().make("sum", {squares}, {{"axes", std::move(axes)}, {"keep_dims", false}});
    return b().make("sqrt", {squares});
  }

  /// The mean of the runs since the last update. The last run of a step leaves zeros for the next one.
  ValueId accumulated(ValueId g) {
    FlatState sum = flatStateOf(b(), kAccumulatedState, trained_.total);
    const Shape shape = rowsOf(trained_.total);
    const ValueId sum_before = before(b(), sum, 0, trained_.total);
    const ValueId share = b().mul(g, 1.0 / static_cast<double>(config_.accumulate));
    const ValueId total = guard_.spoiledSum(sum_before, b().add(sum_before, share));
    const ValueId zero = b().constant(0, shape);
    const ValueId last = b().make("greater", {scalar(kApply, shape), zero});
    write(b(), sum, 0, b().make("where", {last, zero, total}));
    finish(b(), sum);
    return total;
  }

  void checkNorm(Gradients& g) {
    g.norm = norm(g.rows);
    g.scale = guard_.closedScale(g.norm, b().constant(1, Shape{}));
  }
  void clipNorm(Gradients& g) {
    g.norm = norm(g.rows);
    const ValueId limit = b().constant(config_.clip_grad_norm, Shape{});
    const ValueId ratio = b().div(limit, b().add(g.norm, config_.clip_epsilon));
    g.scale = guard_.closedScale(g.norm, b().make("min", {ratio, b().constant(1, Shape{})}));
    g.rows = b().mul(g.rows, b().broadcastTo(g.scale, rowsOf(trained_.total)));
  }

  // The update.

  void update(const Gradients& g) {
    const UpdateRule& rule = ruleOf(config_.kind);
    FlatState parameters{std::string(kParameterState), params_, params_};
    std::vector<FlatState> moments;
    for (std::string_view name : {kFirstMomentState, kSecondMomentState}) {
      if (moments.size() < rule.moments(config_)) moments.push_back(flatStateOf(b(), name, trained_.total));
    }
    std::optional<FlatState> average;
    if (config_.ema_decay > 0) average = flatStateOf(b(), kAverageState, b().shapeOf(params_).elementCount());

    for (const Stretch& stretch : stretchesOf(in_.parameters, config_)) {
      const UpdateContext context = contextOf(stretch, g, parameters, moments);
      const Updated updated = rule.apply(context);
      const ValueId open = guard_.both(isOpen(g, stretch), trainedRows(stretch));
      const ValueId parameter = guard_.chosen(open, updated.parameter, context.parameter);
      for (size_t i = 0; i < moments.size(); ++i)
        write(b(), moments[i], stretch.in_trained, guard_.chosen(open, updated.moments[i], context.moments[i]));
      write(b(), parameters, stretch.in_all, parameter);
      if (!average) continue;
      const ValueId old = before(b(), *average, stretch.in_all, stretch.length);
      const ValueId moved = movingAverage(b(), old, config_.ema_decay, updated.parameter);
      write(b(), *average, stretch.in_all, guard_.chosen(open, moved, old));
    }
    for (const FlatState& moment : moments) finish(b(), moment);
    finish(b(), parameters);
    if (average) finish(b(), *average);
  }

  /// What the rule sees of a stretch.
  UpdateContext contextOf(const Stretch& stretch, const Gradients& g, const FlatState& parameters, const std::vector<FlatState>& moments) {
    const Shape shape = rowsOf(stretch.length);
    UpdateContext context{.builder = b(),
                          .config = config_,
                          .parameter = {},
                          .gradient = {},
                          .moments = {},
                          .rate = {},
                          .lr = {},
                          .epsilon = {},
                          .decay = {}};
    context.parameter = before(b(), parameters, stretch.in_all, stretch.length);
    context.gradient = partOf(g.rows, stretch);
    for (const FlatState& moment : moments) context.moments.push_back(before(b(), moment, stretch.in_trained, stretch.length));
    context.rate = scalar(kRate, shape);
    context.lr = scalar(kLearningRate, shape);
    context.epsilon = scalar(kEpsilon, shape);
    if (const ValueId factor = perParameter(stretch, &ParameterSetting::lr_factor, 1); factor.valid()) {
      context.rate = b().mul(context.rate, factor);
      context.lr = b().mul(context.lr, factor);
    }
    context.decay = perParameter(stretch, &ParameterSetting::weight_decay, 0);
    return context;
  }
  ValueId partOf(ValueId rows, const Stretch& stretch) {
    const ValueId flat = b().reshape(rows, Shape{trained_.total});
    return b().reshape(slice(b(), flat, stretch.in_trained, stretch.length), rowsOf(stretch.length));
  }
  /// One value per parameter in a shape of rows; invalid where all are `neutral`.
  ValueId perParameter(const Stretch& stretch, double ParameterSetting::* member, double neutral) {
    Constant table{{DType::F32, Shape{stretch.length / kRow, 1}}, {}};
    for (const ParameterInfo* parameter : stretch.parameters) {
      const auto rows = static_cast<size_t>(padded(parameter->type.shape.elementCount()) / kRow);
      table.data.insert(table.data.end(), rows, passes::settingOf(config_, *parameter).*member);
    }
    const double first = table.data.front();
    if (std::all_of(table.data.begin(), table.data.end(), [&](double d) { return d == first; }))
      return first == neutral ? ValueId() : b().constant(first, rowsOf(stretch.length));
    const ConstantId id(b().graph().constants.size());
    b().mutableGraph().constants.push_back(std::move(table));
    return b().broadcastTo(b().make("dense", {}, {{"data", id}}), rowsOf(stretch.length));
  }

  /// Invalid where all of the stretch is trained.
  ValueId trainedRows(const Stretch& stretch) {
    const ParameterInfo& first = *stretch.parameters.front();
    const std::vector<RowRange> rows = passes::settingOf(config_, first).rows;
    return rows.empty() ? ValueId() : isTrained(b(), first.type.shape, rows, rowsOf(stretch.length));
  }
  /// Whether this run's update counts: it is the last one of a step that counts.
  ValueId isOpen(const Gradients& g, const Stretch& stretch) {
    const Shape shape = rowsOf(stretch.length);
    ValueId open;
    if (config_.skip_non_finite && g.scale.valid()) {
      const ValueId scale = b().broadcastTo(g.scale, shape);
      open = b().make("greater", {scale, b().constant(0, shape)});
    } else {
      open = guard_.isLossFinite(shape);
    }
    if (config_.accumulate == 1) return open;
    const ValueId last = isLast(shape);
    if (!open.valid()) return last;
    open = guard_.both(last, open);
    return guard_.both(open, guard_.isSound(partOf(g.sum, stretch)));
  }

  const Graph& in_;
  const OptimizerConfig& config_;
  Rewriter rewriter_;
  StepGuard guard_;
  ParameterLayout trained_;
  std::unordered_map<std::string_view, const ParameterInfo*> infos_;  // by name
  ValueId params_, scalars_;
};

}  // namespace

Result<Graph> optimizer(const Graph& graph, const OptimizerConfig& config) {
  if (trainedParameters(graph.parameters, config).empty())
    return fail("optimizer.C1", "the model has no parameters to train", {}, "declare parameters, or let a group freeze only some of them");
  if (config.kind == OptimizerKind::Sgd && config.nesterov && config.momentum <= 0) {
    return fail("optimizer.C2", "nesterov needs a momentum above 0", {}, "set momentum, for example 0.9");
  }
  if (config.accumulate < 1) return fail("optimizer.C3", fmt::format("accumulate is {}, but must be at least 1", config.accumulate));
  std::set<std::string_view> names;
  for (const ParameterInfo& info : graph.parameters) names.insert(info.name);
  for (const auto& [name, setting] : config.parameters) {
    if (!names.contains(name)) return fail("optimizer.C4", fmt::format("there is a setting for '{}', but no such parameter", name));
  }
  return Training(graph, config).run();
}

}  // namespace lockstep::passes
