// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/checkpoint_metadata.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "ir/support/diagnostic.h"

namespace lockstep::detail {

namespace {

constexpr std::string_view kIntCursor = "lockstep.cursor.int.", kTextCursor = "lockstep.cursor.text.";
constexpr std::string_view kStates = "lockstep.state.";

const std::string& entry(const Metadata& metadata, const std::string& key) {
  auto found = metadata.find(key);
  if (found == metadata.end()) {
    incompatible("metadata", fmt::format("the file has no entry '{}'", key), "only files that a trainer saved hold a training state");
  }
  return found->second;
}

template <class T>
T parseNumber(const std::string& key, std::string_view text) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    incompatible("metadata", fmt::format("'{}' is '{}', no number", key, text), "the file is damaged; use another checkpoint");
  }
  return value;
}

template <class T>
T readAs(const Metadata& metadata, const std::string& key) {
  return parseNumber<T>(key, entry(metadata, key));
}

constexpr const char* kDamaged = "the file is damaged; use another checkpoint";

/// A rate, or what one is multiplied by.
double readRate(const Metadata& metadata, const std::string& key) {
  const auto value = readAs<double>(metadata, key);
  if (!std::isfinite(value) || value < 0)
    incompatible("metadata", fmt::format("'{}' is {}, but a learning rate is a finite number and at least 0", key, value), kDamaged);
  return value;
}

int64_t parseCount(const std::string& key, std::string_view text, int64_t least) {
  const auto value = parseNumber<int64_t>(key, text);
  if (value < least || value > kMostSteps)
    incompatible("metadata", fmt::format("'{}' is {}, but a number of steps is {} to {}", key, value, least, kMostSteps), kDamaged);
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

/// "f32[16,1]"
graph::TensorType parseType(const std::string& key, std::string_view text) {
  const size_t open = text.find('[');
  const std::optional<graph::DType> dtype = graph::findDType(text.substr(0, open));
  if (!dtype || open == std::string_view::npos || !text.ends_with(']')) {
    incompatible("metadata", fmt::format("'{}' is '{}', no type", key, text), "the file is damaged; use another checkpoint");
  }
  std::vector<int64_t> extents;
  for (std::string_view rest = text.substr(open + 1, text.size() - open - 2); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    extents.push_back(parseNumber<int64_t>(key, rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!io::checkedElementCount(extents)) incompatible("metadata", fmt::format("'{}' has an impossible shape", key));
  return {*dtype, graph::Shape(extents)};
}

}  // namespace

void incompatible(std::string_view code, std::string message, std::string remedy) {
  throw Error(
      {.code = fmt::format("checkpoint.{}", code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)},
      ExitCode::IncompatibleCheckpoint);
}

uint64_t readNumber(const Metadata& metadata, const std::string& key) { return readAs<uint64_t>(metadata, key); }
uint64_t readStep(const Metadata& metadata, const std::string& key) {
  return static_cast<uint64_t>(parseCount(key, entry(metadata, key), 0));
}

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
  if (depth > kDeepest) incompatible("metadata", fmt::format("schedules are nested more than {} deep", kDeepest), kDamaged);
  const std::string& kind = entry(metadata, prefix + "kind");
  const auto row = std::ranges::find(kKinds, std::string_view(kind), &KindRow::name);
  if (row == kKinds.end()) incompatible("metadata", fmt::format("'{}kind' is '{}', no schedule of this build", prefix, kind));
  Schedule schedule;
  schedule.kind = row->kind;
  schedule.peak = readRate(metadata, prefix + "peak");
  schedule.final = readRate(metadata, prefix + "final");
  schedule.gamma = readRate(metadata, prefix + "gamma");
  schedule.steps = parseCount(prefix + "steps", entry(metadata, prefix + "steps"), 1);
  schedule.every = parseCount(prefix + "every", entry(metadata, prefix + "every"), 1);
  for (std::string_view rest = entry(metadata, prefix + "milestones"); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    schedule.milestones.push_back(parseCount(prefix + "milestones", rest.substr(0, comma), 1));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  const std::string start = prefix + "start_step";
  if (metadata.contains(start)) schedule.start_step = parseCount(start, entry(metadata, start), -kMostSteps);
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
  }
}

void writeStates(Metadata& metadata, const std::map<std::string, StateInfo, std::less<>>& states) {
  for (const auto& [name, info] : states) {
    metadata[std::string(kStates) + name] = fmt::format("{} {}", toString(info.type), info.initial);
  }
}

std::map<std::string, StateInfo, std::less<>> readStates(const Metadata& metadata) {
  std::map<std::string, StateInfo, std::less<>> states;
  for (const auto& [key, text] : metadata) {
    if (!key.starts_with(kStates)) continue;
    const size_t space = std::min(text.find(' '), text.size() - 1);
    StateInfo info;
    info.type = parseType(key, std::string_view(text).substr(0, space));
    info.initial = parseNumber<double>(key, std::string_view(text).substr(space + 1));
    states.emplace(key.substr(kStates.size()), info);
  }
  return states;
}

void compareMetadata(std::string_view what, const Metadata& ours, const Metadata& file) {
  const std::string prefix = fmt::format("lockstep.{}.", what);
  const auto reject = [&](const std::string& key, const std::string& in_file, const std::string& here) {
    incompatible(what, fmt::format("{} '{}' is {} in the checkpoint and {} in the trainer", what, key.substr(prefix.size()), in_file, here),
                 "compile the model and optimizer that the checkpoint was made with");
  };
  for (const auto& [key, text] : ours) {
    if (!key.starts_with(prefix)) continue;
    const auto found = file.find(key);
    if (found == file.end()) reject(key, "absent", text);
    if (found->second != text) reject(key, found->second, text);
  }
  for (const auto& [key, text] : file) {
    if (key.starts_with(prefix) && !ours.contains(key)) reject(key, text, "absent");
  }
}

}  // namespace lockstep::detail
