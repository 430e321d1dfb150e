// SPDX-License-Identifier: Apache-2.0
#include "frontend/optim/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/optim/checks.h"
#include "frontend/trace/throw_error.h"
#include "ir/support/nearest.h"

namespace lockstep::detail {

namespace {

void needMatch(std::string_view what, const NameFilter& filter, const std::vector<graph::ParameterInfo>& parameters) {
  if (std::any_of(parameters.begin(), parameters.end(), [&](const graph::ParameterInfo& info) { return filter(info.name); })) return;
  reject("optimizer.filter", fmt::format("{} matches no parameter", what),
         "the model has " + joinNames(parameters, &graph::ParameterInfo::name));
}

std::vector<passes::RowRange> rowsOf(const ParameterGroup& group, const graph::ParameterInfo& info) {
  if (group.frozen && !group.rows.empty())
    reject("optimizer.rows", fmt::format("the group of '{}' is frozen, and names rows that are trained", info.name),
           "leave out .frozen, which is for whole parameters, or .rows");
  std::vector<passes::RowRange> rows;
  for (const RowRange& range : group.rows) {
    const auto rank = static_cast<int64_t>(info.type.shape.rank());
    const int64_t extent = range.axis >= 0 && range.axis < rank ? info.type.shape.extent(static_cast<size_t>(range.axis)) : 0;
    if (range.first < 0 || range.count < 1 || range.first >= extent || range.count > extent - range.first) {
      reject("optimizer.rows",
             fmt::format("'{}' is {}, which has no {} rows from {} on along axis {}", info.name, toString(info.type), range.count,
                         range.first, range.axis),
             "give first, count and axis within the parameter's shape, and the group a filter for parameters of that shape");
    }
    rows.push_back({.first = range.first, .count = range.count, .axis = range.axis});
  }
  return rows;
}

}  // namespace

passes::OptimizerConfig optimizerConfig(const OptimizerSpec& spec, const std::vector<graph::ParameterInfo>& parameters, int64_t accumulate,
                                        const Precision& precision) {
  checkOptimizer(spec);
  checkPrecision(precision);
  static constexpr passes::OptimizerKind kKinds[] = {passes::OptimizerKind::Adam, passes::OptimizerKind::AdamW, passes::OptimizerKind::Sgd,
                                                     passes::OptimizerKind::Lion};
  passes::OptimizerConfig config{.kind = kKinds[static_cast<size_t>(spec.name)],
                                 .beta1 = spec.beta1,
                                 .beta2 = spec.beta2,
                                 .epsilon = spec.eps,
                                 .corrected_epsilon = spec.corrected_eps,
                                 .weight_decay = spec.weight_decay,
                                 .momentum = spec.momentum,
                                 .nesterov = spec.nesterov,
                                 .clip_grad_value = spec.clip_grad_value,
                                 .clip_grad_norm = spec.clip_grad_norm,
                                 .clip_epsilon = spec.clip_epsilon,
                                 .ema_decay = spec.ema_decay,
                                 .accumulate = accumulate,
                                 .skip_non_finite = spec.skip_non_finite,
                                 .check_gradients = spec.check_gradients,
                                 .loss_scaling = {},
                                 .parameters = {}};
  if (precision.dtype == graph::DType::F16) {
    if (!spec.skip_non_finite)
      reject("precision.skip", "f16 scales the loss, and its scale is found by leaving out steps that are not finite",
             "leave skip_non_finite on, or use bf16, which needs no scale");
    config.loss_scaling = {.initial = precision.loss_scale.initial, .growth_interval = precision.loss_scale.growth_interval};
    config.check_gradients = true;
  }
  for (size_t i = 0; i < spec.groups.size(); ++i) needMatch(fmt::format("parameter group {}", i + 1), spec.groups[i].filter, parameters);
  if (spec.normalize_grads) needMatch("normalize_grads", spec.normalize_grads, parameters);
  for (const graph::ParameterInfo& info : parameters) {
    const passes::ParameterSetting usual = passes::settingOf(config, info);
    passes::ParameterSetting setting = usual;
    auto group =
        std::find_if(spec.groups.begin(), spec.groups.end(), [&](const ParameterGroup& candidate) { return candidate.filter(info.name); });
    if (group != spec.groups.end()) {
      setting.lr_factor = group->lr_factor;
      setting.weight_decay = group->weight_decay.value_or(usual.weight_decay);
      setting.frozen = group->frozen;
      setting.rows = rowsOf(*group, info);
    }
    setting.normalize = spec.normalize_grads && spec.normalize_grads(info.name);
    if (setting != usual) config.parameters.emplace(info.name, setting);
  }
  return config;
}

}  // namespace lockstep::detail
