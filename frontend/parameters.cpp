// SPDX-License-Identifier: Apache-2.0
#include "frontend/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "passes/optimizer_config.h"

namespace lockstep::detail {

namespace {

[[noreturn]] void reject(std::string code, std::string message, std::string remedy = {}, ExitCode exit_code = ExitCode::BadInput) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)}, exit_code);
}

[[noreturn]] void incompatible(std::string code, std::string message, std::string remedy = {}) {
  reject("checkpoint." + code, std::move(message), std::move(remedy), ExitCode::IncompatibleCheckpoint);
}

constexpr std::string_view kVersion = "1";

/// The name of a parameter's part of a state leaf in a file.
std::string tensorName(std::string_view leaf, std::string_view parameter) {
  return leaf == passes::kParameterState ? std::string(parameter) : fmt::format("{}/{}", leaf, parameter);
}

const std::string& metadata(const io::TensorFile& file, std::string_view key) {
  auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    incompatible("metadata", fmt::format("the file has no entry '{}'", key), "only files that a trainer saved hold a training state");
  }
  return found->second;
}

uint64_t number(const io::TensorFile& file, std::string_view key) {
  const std::string& text = metadata(file, key);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) incompatible("metadata", fmt::format("'{}' is '{}', no number", key, text));
  return value;
}

std::vector<float> readLeaf(const graph::ParameterLayout& layout, const std::string& leaf, const io::TensorFile& file) {
  std::vector<float> flat(static_cast<size_t>(layout.total), 0.0f);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    std::string name = tensorName(leaf, slot.name);
    const io::Array* array = file.find(name);
    if (array == nullptr) incompatible("missing", fmt::format("the file has no tensor '{}'", name));
    if (array->type != io::ElementType::F32 || array->shape != slot.type.shape.extents()) {
      incompatible("shape", fmt::format("tensor '{}' is {}, but the model has {}", name, describe(*array), toString(slot.type)));
    }
    std::vector<float> values = array->toFloats();
    std::copy(values.begin(), values.end(), flat.begin() + slot.offset);
  }
  return flat;
}

}  // namespace

ParameterValues splitParameters(const graph::ParameterLayout& layout, const std::vector<float>& flat) {
  ParameterValues values;
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    auto first = flat.begin() + slot.offset;
    values.emplace(slot.name, std::vector<float>(first, first + slot.size));
  }
  return values;
}

std::vector<float> joinParameters(const graph::ParameterLayout& layout, const ParameterValues& values) {
  for (const auto& [name, data] : values) {
    if (layout.find(name) == nullptr) reject("parameters.unknown", fmt::format("the model has no parameter '{}'", name));
  }
  std::string missing;
  std::vector<float> flat(static_cast<size_t>(layout.total), 0.0f);
  for (const graph::ParameterLayout::Slot& slot : layout.slots) {
    auto found = values.find(slot.name);
    if (found == values.end()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", slot.name);
      continue;
    }
    if (static_cast<int64_t>(found->second.size()) != slot.size) {
      reject("parameters.length", fmt::format("parameter '{}' is {} with {} elements but gets {}", slot.name, toString(slot.type),
                                              slot.size, found->second.size()));
    }
    std::copy(found->second.begin(), found->second.end(), flat.begin() + slot.offset);
  }
  if (!missing.empty()) reject("parameters.missing", fmt::format("parameters are missing: {}", missing));
  return flat;
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

io::TensorFile formatCheckpoint(const graph::ParameterLayout& layout, const TrainingState& state) {
  io::TensorFile file;
  file.metadata = {{"lockstep.checkpoint", std::string(kVersion)},
                   {"lockstep.optimizer", state.optimizer},
                   {"lockstep.step", std::to_string(state.step)},
                   {"lockstep.seed", std::to_string(state.seed)}};
  for (const auto& [leaf, flat] : state.states) {
    for (const graph::ParameterLayout::Slot& slot : layout.slots) {
      std::span<const float> values = std::span(flat).subspan(static_cast<size_t>(slot.offset), static_cast<size_t>(slot.size));
      file.tensors.emplace(tensorName(leaf, slot.name), io::Array::fromFloats(slot.type.shape.extents(), values));
    }
  }
  return file;
}

TrainingState readCheckpoint(const graph::ParameterLayout& layout, std::string_view optimizer, const std::vector<std::string>& leaves,
                             const io::TensorFile& file) {
  if (const std::string& version = metadata(file, "lockstep.checkpoint"); version != kVersion) {
    incompatible("version", fmt::format("the checkpoint has version '{}', this build reads '{}'", version, kVersion));
  }
  if (const std::string& kind = metadata(file, "lockstep.optimizer"); kind != optimizer) {
    incompatible("optimizer", fmt::format("the checkpoint was made by {}, the trainer uses {}", kind, optimizer));
  }
  TrainingState state{
      .optimizer = std::string(optimizer), .step = number(file, "lockstep.step"), .seed = number(file, "lockstep.seed"), .states = {}};
  std::set<std::string> expected;
  for (const std::string& leaf : leaves) {
    state.states.emplace(leaf, readLeaf(layout, leaf, file));
    for (const graph::ParameterLayout::Slot& slot : layout.slots) expected.insert(tensorName(leaf, slot.name));
  }
  for (const auto& [name, array] : file.tensors) {
    if (!expected.contains(name)) incompatible("unknown", fmt::format("the file has a tensor '{}' that the trainer does not know", name));
  }
  return state;
}

}  // namespace lockstep::detail
