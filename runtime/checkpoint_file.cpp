// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/memory_array.h"

namespace lockstep::detail {

namespace {

constexpr std::string_view kVersion = "2";
/// The flat state of the parameters themselves.
constexpr std::string_view kParameters = "params";

/// The name of a parameter's part of a flat state in a file.
std::string partName(std::string_view state, std::string_view parameter) {
  return state == kParameters ? std::string(parameter) : fmt::format("{}/{}", state, parameter);
}

/// Whether a state takes the values of a file: those of its own type, and an f32 the floats of 16 bits, which it has all of.
bool takes(io::ElementType state, io::ElementType file) {
  return file == state || (state == io::ElementType::F32 && (file == io::ElementType::F16 || file == io::ElementType::BF16));
}

/// Takes tensors out of a file by name and remembers which.
class Taker {
 public:
  explicit Taker(const io::TensorFile& file) : file_(file) {}
  const io::Array& take(const std::string& name, const io::Array& like) {
    const io::Array* array = file_.find(name);
    if (array == nullptr) incompatible("missing", fmt::format("the file has no tensor '{}'", name));
    if (!takes(like.type, array->type) || array->shape != like.shape) {
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

CheckpointForm formOf(const program::Program& program) {
  CheckpointForm form{program.checkpoint, {}};
  for (const program::PersistentState& state : program.states) {
    if (state.parts.empty()) continue;
    const program::Buffer& buffer = program[state.buffer];
    graph::ParameterLayout layout{.slots = {}, .total = buffer.type.shape.elementCount()};
    for (const program::StatePart& part : state.parts) {
      const auto info = std::ranges::find(program.parameters, part.parameter, &graph::ParameterInfo::name);
      layout.slots.push_back({part.parameter, info->type, info->decay, part.offset, info->type.shape.elementCount()});
    }
    form.flat.emplace(buffer.name, std::move(layout));
  }
  return form;
}

io::TensorFile formatCheckpoint(const CheckpointForm& form, const SavedTraining& saved) {
  io::TensorFile file;
  file.metadata = form.entries;
  file.metadata["lockstep.checkpoint"] = std::string(kVersion);
  file.metadata["lockstep.step"] = std::to_string(saved.step);
  file.metadata["lockstep.seed"] = std::to_string(saved.seed);
  writeStates(file.metadata, saved.infos);
  for (const auto& [name, values] : saved.states) {
    const auto layout = form.flat.find(name);
    if (layout == form.flat.end()) {
      file.tensors.emplace(name, values);
      continue;
    }
    const std::vector<float> flat = values.toFloats();
    for (const graph::ParameterLayout::Slot& slot : layout->second.slots) {
      const auto part = std::span(flat).subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
      file.tensors.emplace(partName(name, slot.name), io::Array::fromFloats(slot.type.shape.extents(), part));
    }
  }
  return file;
}

SavedTraining readCheckpoint(const CheckpointForm& form, StateInfos infos, bool open_states, const io::TensorFile& file) {
  const auto version = file.metadata.find("lockstep.checkpoint");
  if (version == file.metadata.end()) {
    incompatible("metadata", "the file has no entry 'lockstep.checkpoint'", "only files that a trainer saved hold a training state");
  }
  if (version->second != kVersion) {
    incompatible("version", fmt::format("the checkpoint has version '{}', this build reads '{}'", version->second, kVersion));
  }
  compareMetadata("optimizer", form.entries, file.metadata);
  compareMetadata("parameter", form.entries, file.metadata);
  SavedTraining saved{.step = readStep(file.metadata, "lockstep.step"),
                      .seed = readNumber(file.metadata, "lockstep.seed"),
                      .infos = readStates(file.metadata),
                      .states = {}};
  if (open_states) infos.insert(saved.infos.begin(), saved.infos.end());
  Metadata ours;
  writeStates(ours, infos);
  compareMetadata("state", ours, file.metadata);

  Taker taker(file);
  for (const auto& [name, info] : saved.infos) {
    const auto layout = form.flat.find(name);
    if (layout == form.flat.end()) {
      const io::Array& values = taker.take(name, zeroArray(info.type));
      const bool same = values.type == elementType(info.type.dtype);
      saved.states.emplace(name, same ? values : io::Array::fromFloats(values.shape, values.toFloats()));
      continue;
    }
    const int64_t total = layout->second.total;
    if (info.type != graph::TensorType{graph::DType::F32, graph::Shape{total}})
      incompatible("state", fmt::format("state '{}' is {} in the checkpoint, but takes {} numbers", name, toString(info.type), total));
    saved.states.emplace(name, readFlat(layout->second, name, taker));
  }
  taker.requireAllTaken();
  return saved;
}

}  // namespace lockstep::detail
