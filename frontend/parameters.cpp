// SPDX-License-Identifier: Apache-2.0
#include "frontend/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/optimizer_config.h"

namespace lockstep::detail {

namespace {

[[noreturn]] void reject(std::string code, std::string message) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = {}});
}

}  // namespace

std::vector<graph::ParameterInfo> parameterInfos(const Module& model) {
  std::vector<graph::ParameterInfo> infos;
  for (const NamedParameter& named : model.parameters()) infos.push_back({named.name, named.parameter->type(), named.parameter->decay()});
  return infos;
}

std::vector<float> initialParameters(const TrainedModel& model, uint64_t seed) {
  std::vector<float> flat(static_cast<size_t>(model.layout.total), 0.0f);
  const std::vector<NamedParameter> parameters = model.module->parameters();
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const std::vector<float> values = parameters[i].parameter->initial(seed, i);
    std::copy(values.begin(), values.end(), flat.begin() + model.layout.slots[i].offset);
  }
  return flat;
}

void writeParameters(const TrainedModel& model, const std::vector<float>& flat) {
  for (std::string_view name : {passes::kParameterState, passes::kAverageState}) {
    if (model.states->has(name)) model.states->writeFloats(name, flat);
  }
}

ParameterValues splitParameters(const graph::ParameterLayout& layout, const std::vector<float>& flat) {
  ParameterValues values;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    auto first = flat.begin() + slot.offset;
    values.emplace(slot.name, std::vector<float>(first, first + slot.size));
  }
  return values;
}

ParameterValues readValues(const TrainedModel& model) {
  ParameterValues values = splitParameters(model.layout, model.states->readFloats(passes::kParameterState));
  for (const auto& [name, info] : model.states->infos()) {
    if (isBufferState(name)) values.emplace(bufferPath(name), model.states->readFloats(name));
  }
  return values;
}

void writeValues(const TrainedModel& model, const ParameterValues& values) {
  std::map<std::string, graph::TensorType, std::less<>> wanted;
  for (const graph::ParameterLayout::Slot& slot : model.layout.slots) wanted.emplace(slot.name, slot.type);
  for (const auto& [name, info] : model.states->infos()) {
    if (isBufferState(name)) wanted.emplace(bufferPath(name), info.type);
  }
  std::string missing;
  for (const auto& [name, type] : wanted) {
    auto found = values.find(name);
    if (found == values.end()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
    } else if (static_cast<int64_t>(found->second.size()) != type.shape.elementCount()) {
      reject("parameters.length",
             fmt::format("'{}' is {} with {} elements but gets {}", name, toString(type), type.shape.elementCount(), found->second.size()));
    }
  }
  if (!missing.empty()) reject("parameters.missing", fmt::format("parameters are missing: {}", missing));
  for (const auto& [name, data] : values) {
    if (!wanted.contains(name)) reject("parameters.unknown", fmt::format("the model has no parameter or buffer '{}'", name));
  }

  std::vector<float> flat(static_cast<size_t>(model.layout.total), 0.0f);
  for (const graph::ParameterLayout::Slot& slot : model.layout.slots) {
    std::ranges::copy(values.find(slot.name)->second, flat.begin() + slot.offset);
  }
  writeParameters(model, flat);
  for (const auto& [name, info] : model.states->infos()) {
    if (isBufferState(name)) model.states->writeFloats(name, values.find(bufferPath(name))->second);
  }
}

void requireAverage(const TrainedModel& model) {
  if (model.states->has(passes::kAverageState)) return;
  throw Error({.code = "parameters.ema",
               .message = "the trainer has no average of its parameters",
               .where = {},
               .notes = {},
               .remedy = "set ema_decay of the optimizer"});
}

io::Array toArray(const BatchItem& item) {
  return std::visit(
      [](auto values) {
        std::vector<int64_t> shape{static_cast<int64_t>(values.size())};
        if constexpr (std::is_same_v<decltype(values), std::span<const float>>) {
          return io::Array::fromFloats(shape, values);
        } else {
          std::vector<int32_t> ints(values.begin(), values.end());
          return io::Array::fromInts(shape, ints);
        }
      },
      item.data);
}

io::Array toArray(const StepValue& value) {
  const io::ElementType type = value.type.dtype == graph::DType::F32 ? io::ElementType::F32 : io::ElementType::U32;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(value.words));
  return {type, value.type.shape.extents(), {bytes.begin(), bytes.end()}};
}

}  // namespace lockstep::detail
