// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/trace/throw_error.h"
#include "ir/support/nearest.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::detail {

namespace {

[[noreturn]] void refuseName(const graph::ParameterLayout& layout, const std::string& name) {
  std::vector<std::string> known;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) known.push_back(slot.name);
  reject("parameters.unknown", fmt::format("the model has no parameter '{}'", name), suggest(name, known));
}

[[noreturn]] void refuseLength(const graph::ParameterLayout::Slot& slot, size_t elements) {
  reject("parameters.length",
         fmt::format("parameter '{}' is {} with {} elements but gets {}", slot.name, toString(slot.type), slot.size, elements),
         "give its elements in row-major order");
}

}  // namespace

std::vector<graph::ParameterInfo> parameterInfos(const Module& model) {
  std::vector<graph::ParameterInfo> infos;
  for (const NamedParameter& named : model.parameters()) {
    infos.push_back({named.name, named.parameter->type(), named.parameter->decay()});
  }
  return infos;
}

void initialiseParameters(const TrainedModel& model, uint64_t seed) {
  const std::vector<NamedParameter> parameters = model.module->parameters();
  // The state begins with zeros. One by one takes many writes, and all at once as much memory as the model.
  constexpr int64_t kManyElements = int64_t{1} << 24;
  if (model.layout.total > kManyElements) {
    for (uint32_t i = 0; i < parameters.size(); ++i)
      model.states->writeFloatsAt(passes::kParameterState, model.layout.slots[i].offset, parameters[i].parameter->initial(seed, i));
    restartAverages(model);
    return;
  }
  std::vector<float> flat(static_cast<size_t>(model.layout.total), 0.0f);
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const std::vector<float> values = parameters[i].parameter->initial(seed, i);
    std::copy(values.begin(), values.end(), flat.begin() + model.layout.slots[i].offset);
  }
  writeParameters(model, flat);
}

void writeParameters(const TrainedModel& model, const std::vector<float>& flat) {
  if (flat.empty()) return;
  model.states->writeFloats(passes::kParameterState, flat);
  restartAverages(model);
}

void writeParameter(const TrainedModel& model, const std::string& name, std::span<const float> values) {
  const auto slot = std::ranges::find(model.layout.slots, name, &graph::ParameterLayout::Slot::name);
  if (slot == model.layout.slots.end()) refuseName(model.layout, name);
  if (static_cast<int64_t>(values.size()) != slot->size) refuseLength(*slot, values.size());
  model.states->writeFloatsAt(passes::kParameterState, slot->offset, values);
  restartAverages(model);
}

void requireAverages(const TrainedModel& model) {
  if (model.states->has(passes::kAverageState)) return;
  reject("parameters.ema", "the trainer keeps no averages of its parameters", "set ema_decay of the optimizer");
}

void restartAverages(const TrainedModel& model) {
  if (model.states->has(passes::kAverageState))
    model.states->writeFloats(passes::kAverageState, model.states->readFloats(passes::kParameterState));
}

ParameterValues splitParameters(const graph::ParameterLayout& layout, const std::vector<float>& flat) {
  ParameterValues values;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    auto first = flat.begin() + slot.offset;
    values.emplace(slot.name, std::vector<float>(first, first + slot.size));
  }
  return values;
}

std::vector<float> joinParameters(const graph::ParameterLayout& layout, const ParameterValues& values) {
  std::set<std::string, std::less<>> known;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) known.insert(slot.name);
  for (const auto& [name, data] : values) {
    if (!known.contains(name)) refuseName(layout, name);
  }
  std::string missing;
  std::vector<float> flat(static_cast<size_t>(layout.total), 0.0f);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    auto found = values.find(slot.name);
    if (found == values.end()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", slot.name);
      continue;
    }
    if (static_cast<int64_t>(found->second.size()) != slot.size) refuseLength(slot, found->second.size());
    std::copy(found->second.begin(), found->second.end(), flat.begin() + slot.offset);
  }
  if (!missing.empty())
    reject("parameters.missing", fmt::format("parameters are missing: {}", missing), "give all of them, as download() does");
  return flat;
}

}  // namespace lockstep::detail
