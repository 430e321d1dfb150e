// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "frontend/train/checkpoint_metadata.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::detail {

namespace {

constexpr std::string_view kVersion = "2";

/// Where the parameters lie in a flat state; nothing for other states. Moments have no room for frozen parameters.
std::optional<graph::ParameterLayout> layoutOf(const TrainedModel& model, std::string_view name) {
  if (name == passes::kParameterState || name == passes::kAverageState) return model.layout;
  if (!passes::isOptimizerState(name)) return std::nullopt;
  return graph::layoutParameters(passes::trainedParameters(model.parameters, model.config));
}

/// The name of a parameter's part of a flat state in a file.
std::string partName(std::string_view state, std::string_view parameter) {
  return state == passes::kParameterState ? std::string(parameter) : fmt::format("{}/{}", state, parameter);
}

/// Takes tensors out of a file by name and remembers which.
class Taker {
 public:
  explicit Taker(const io::TensorFile& file) : file_(file) {}
  const io::Array& take(const std::string& name, const io::Array& like) {
    const io::Array* array = file_.find(name);
    if (array == nullptr) incompatible("missing", fmt::format("the file has no tensor '{}'", name));
    if (array->type != like.type || array->shape != like.shape) {
      incompatible("shape", fmt::format("tensor '{}' is {}, but the trainer has {}", name, describe(*array), describe(like)));
    }
    taken_.insert(name);
    return *array;
  }
  void requireAllTaken() const {
    for (const auto& [name, array] : file_.tensors) {
      if (!taken_.contains(name)) incompatible("unknown", fmt::format("the file has a tensor '{}' that the trainer does not know", name));
    }
  }

 private:
  const io::TensorFile& file_;
  std::set<std::string> taken_;
};

io::Array readFlat(const graph::ParameterLayout& layout, const std::string& state, Taker& taker) {
  std::vector<float> flat(static_cast<size_t>(layout.total), 0.0f);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    const io::Array like = io::Array::zeros(io::ElementType::F32, slot.type.shape.extents());
    const std::vector<float> values = taker.take(partName(state, slot.name), like).toFloats();
    std::ranges::copy(values, flat.begin() + slot.offset);
  }
  return io::Array::fromFloats({layout.total}, flat);
}

}  // namespace

io::TensorFile formatCheckpoint(const TrainedModel& model, const TrainingState& state) {
  io::TensorFile file;
  file.metadata = {{"lockstep.checkpoint", std::string(kVersion)},
                   {"lockstep.step", std::to_string(state.step)},
                   {"lockstep.seed", std::to_string(state.seed)}};
  writeOptimizer(file.metadata, model.config);
  writeParameters(file.metadata, model.parameters, model.config);
  writeStates(file.metadata, state.infos);
  writeSchedule(file.metadata, "lockstep.schedule.", state.schedule);
  writeCursor(file.metadata, state.cursor);
  for (const auto& [name, values] : state.states) {
    const auto layout = layoutOf(model, name);
    if (!layout) {
      file.tensors.emplace(name, values);
      continue;
    }
    const std::vector<float> flat = values.toFloats();
    for (const graph::ParameterLayout::Slot& slot : layout->slots) {
      const auto part = std::span(flat).subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
      file.tensors.emplace(partName(name, slot.name), io::Array::fromFloats(slot.type.shape.extents(), part));
    }
  }
  return file;
}

TrainingState readCheckpoint(const TrainedModel& model, bool open_states, const io::TensorFile& file) {
  const auto version = file.metadata.find("lockstep.checkpoint");
  if (version == file.metadata.end()) {
    incompatible("metadata", "the file has no entry 'lockstep.checkpoint'", "only files that a trainer saved hold a training state");
  }
  if (version->second != kVersion) {
    incompatible("version", fmt::format("the checkpoint has version '{}', this build reads '{}'", version->second, kVersion));
  }
  Metadata ours;
  writeOptimizer(ours, model.config);
  writeParameters(ours, model.parameters, model.config);
  compareMetadata("optimizer", ours, file.metadata);
  compareMetadata("parameter", ours, file.metadata);
  TrainingState state{.step = readStep(file.metadata, "lockstep.step"),
                      .seed = readNumber(file.metadata, "lockstep.seed"),
                      .schedule = readSchedule(file.metadata, "lockstep.schedule."),
                      .cursor = readCursor(file.metadata),
                      .infos = readStates(file.metadata),
                      .states = {}};
  auto infos = persistentStates(*model.states);
  if (open_states) infos.insert(state.infos.begin(), state.infos.end());
  writeStates(ours, infos);
  compareMetadata("state", ours, file.metadata);

  Taker taker(file);
  for (const auto& [name, info] : state.infos) {
    const auto layout = layoutOf(model, name);
    if (layout && info.type != graph::TensorType{graph::DType::F32, graph::Shape{layout->total}}) {
      incompatible("state",
                   fmt::format("state '{}' is {} in the checkpoint, but takes {} numbers", name, toString(info.type), layout->total));
    }
    state.states.emplace(name, layout ? readFlat(*layout, name, taker) : taker.take(name, zeroState(info.type)));
  }
  taker.requireAllTaken();
  return state;
}

}  // namespace lockstep::detail
