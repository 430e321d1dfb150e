// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/checkpoint_settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::detail {

namespace {

constexpr std::string_view kIntCursor = "lockstep.cursor.int.", kTextCursor = "lockstep.cursor.text.";

template <class T>
T readAs(const Metadata& metadata, const std::string& key) {
  return parseNumber<T>(key, entryOf(metadata, key));
}

/// A rate, or what one is multiplied by.
double readRate(const Metadata& metadata, const std::string& key) {
  const auto value = readAs<double>(metadata, key);
  if (!std::isfinite(value) || value < 0)
    incompatible("metadata", fmt::format("'{}' is {}, but a learning rate is a finite number and at least 0", key, value),
                 kDamagedCheckpoint);
  return value;
}

struct KindRow {
  Schedule::Kind kind;
  std::string_view name;
};
constexpr std::array<KindRow, 6> kKinds = {{{Schedule::Kind::Constant, "constant"},
                                            {Schedule::Kind::Linear, "linear"},
                                            {Schedule::Kind::CosineAnnealing, "cosine_annealing"},
                                            {Schedule::Kind::Warmup, "warmup"},
                                            {Schedule::Kind::Staircase, "staircase"},
                                            {Schedule::Kind::MultiStep, "multi_step"}}};

struct NumberRow {
  std::string_view name;
  double passes::OptimizerConfig::* field;
};
/// Every number of an optimizer but its rate, which may change.
constexpr std::array kNumbers{NumberRow{"beta1", &passes::OptimizerConfig::beta1},
                              NumberRow{"beta2", &passes::OptimizerConfig::beta2},
                              NumberRow{"eps", &passes::OptimizerConfig::epsilon},
                              NumberRow{"weight_decay", &passes::OptimizerConfig::weight_decay},
                              NumberRow{"momentum", &passes::OptimizerConfig::momentum},
                              NumberRow{"clip_grad_value", &passes::OptimizerConfig::clip_grad_value},
                              NumberRow{"clip_grad_norm", &passes::OptimizerConfig::clip_grad_norm},
                              NumberRow{"clip_epsilon", &passes::OptimizerConfig::clip_epsilon},
                              NumberRow{"ema_decay", &passes::OptimizerConfig::ema_decay}};

struct FlagRow {
  std::string_view name;
  bool passes::OptimizerConfig::* field;
};
constexpr std::array kFlags{FlagRow{"corrected_eps", &passes::OptimizerConfig::corrected_epsilon},
                            FlagRow{"nesterov", &passes::OptimizerConfig::nesterov},
                            FlagRow{"skip_non_finite", &passes::OptimizerConfig::skip_non_finite}};

constexpr std::array<std::string_view, 4> kOptimizers{"adam", "adamw", "sgd", "lion"};  // by OptimizerKind

}  // namespace

void writeSchedule(Metadata& metadata, const std::string& prefix, const Schedule& schedule) {
  metadata[prefix + "kind"] = std::ranges::find(kKinds, schedule.kind, &KindRow::kind)->name;
  metadata[prefix + "peak"] = fmt::format("{}", schedule.peak);
  metadata[prefix + "final"] = fmt::format("{}", schedule.final);
  metadata[prefix + "gamma"] = fmt::format("{}", schedule.gamma);
  metadata[prefix + "steps"] = fmt::format("{}", schedule.steps);
  metadata[prefix + "every"] = fmt::format("{}", schedule.every);
  metadata[prefix + "milestones"] = fmt::format("{}", fmt::join(schedule.milestones, ","));
  if (schedule.start_step) metadata[prefix + "start_step"] = fmt::format("{}", *schedule.start_step);
  if (schedule.after) writeSchedule(metadata, prefix + "after.", *schedule.after);
}

namespace {

/// Of warmups within warmups; `depth` are around this one.
Schedule readNested(const Metadata& metadata, const std::string& prefix, int depth) {
  constexpr int kDeepest = 64;
  if (depth > kDeepest) incompatible("metadata", fmt::format("schedules are nested more than {} deep", kDeepest), kDamagedCheckpoint);
  const std::string& kind = entryOf(metadata, prefix + "kind");
  const auto row = std::ranges::find(kKinds, std::string_view(kind), &KindRow::name);
  if (row == kKinds.end()) incompatible("metadata", fmt::format("'{}kind' is '{}', no schedule of this build", prefix, kind));
  Schedule schedule;
  schedule.kind = row->kind;
  schedule.peak = readRate(metadata, prefix + "peak");
  schedule.final = readRate(metadata, prefix + "final");
  schedule.gamma = readRate(metadata, prefix + "gamma");
  schedule.steps = parseCount(prefix + "steps", entryOf(metadata, prefix + "steps"), 1);
  schedule.every = parseCount(prefix + "every", entryOf(metadata, prefix + "every"), 1);
  for (std::string_view rest = entryOf(metadata, prefix + "milestones"); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    schedule.milestones.push_back(parseCount(prefix + "milestones", rest.substr(0, comma), 1));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  const std::string start = prefix + "start_step";
  if (metadata.contains(start)) schedule.start_step = parseCount(start, entryOf(metadata, start), -kMostSteps);
  if (schedule.kind == Schedule::Kind::Warmup)
    schedule.after = std::make_shared<const Schedule>(readNested(metadata, prefix + "after.", depth + 1));
  return schedule;
}

}  // namespace

Schedule readSchedule(const Metadata& metadata, const std::string& prefix) { return readNested(metadata, prefix, 0); }

void writeCursor(Metadata& metadata, const DataCursor& cursor) {
  for (const auto& [name, value] : cursor) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      metadata[std::string(kIntCursor) + name] = std::to_string(*number);
    } else {
      metadata[std::string(kTextCursor) + name] = std::get<std::string>(value);
    }
  }
}

DataCursor readCursor(const Metadata& metadata) {
  DataCursor cursor;
  for (const auto& [key, text] : metadata) {
    if (key.starts_with(kIntCursor)) cursor.emplace(key.substr(kIntCursor.size()), parseNumber<int64_t>(key, text));
    if (key.starts_with(kTextCursor)) cursor.emplace(key.substr(kTextCursor.size()), text);
  }
  return cursor;
}

namespace {

void writeOptimizer(Metadata& metadata, const passes::OptimizerConfig& config) {
  const std::string prefix = "lockstep.optimizer.";
  metadata[prefix + "name"] = kOptimizers[static_cast<size_t>(config.kind)];
  metadata[prefix + "accumulate"] = std::to_string(config.accumulate);
  for (const NumberRow& row : kNumbers) metadata[prefix + std::string(row.name)] = fmt::format("{}", config.*row.field);
  for (const FlagRow& row : kFlags) metadata[prefix + std::string(row.name)] = fmt::format("{}", config.*row.field);
}

void writeParameters(Metadata& metadata, const std::vector<graph::ParameterInfo>& parameters, const passes::OptimizerConfig& config) {
  for (const graph::ParameterInfo& info : parameters) {
    const passes::ParameterSetting setting = passes::settingOf(config, info);
    metadata["lockstep.parameter." + info.name] =
        fmt::format("{} weight_decay {} lr_factor {}{}{}", toString(info.type), setting.weight_decay, setting.lr_factor,
                    setting.normalize ? " normalize" : "", setting.frozen ? " frozen" : "");
    for (const passes::RowRange& rows : setting.rows)
      metadata["lockstep.parameter." + info.name] += fmt::format(" rows {} {} axis {}", rows.first, rows.count, rows.axis);
  }
}

}  // namespace

CheckpointForm checkpointForm(const std::vector<graph::ParameterInfo>& parameters, const passes::OptimizerConfig& config) {
  CheckpointForm form;
  writeOptimizer(form.entries, config);
  writeParameters(form.entries, parameters, config);
  const graph::ParameterLayout all = graph::layoutParameters(parameters);
  // Moments have no room for frozen parameters.
  const graph::ParameterLayout trained = graph::layoutParameters(passes::trainedParameters(parameters, config));
  for (const std::string_view name : {passes::kParameterState, passes::kAverageState}) form.flat.emplace(name, all);
  for (const std::string_view name : {passes::kFirstMomentState, passes::kSecondMomentState}) form.flat.emplace(name, trained);
  return form;
}

Metadata checkpointEntries(const CheckpointForm& form, const Schedule& schedule) {
  Metadata entries = form.entries;
  writeSchedule(entries, "lockstep.schedule.", schedule);
  return entries;
}

}  // namespace lockstep::detail
