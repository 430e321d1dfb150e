// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_states.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "ir/support/diagnostic.h"

namespace lockstep::detail {

using graph::DType;

namespace {

constexpr uint64_t kArenaAlignment = 256;  // planBuffers rounds arenas up to it

/// In memory a bool is a u32, and so it is in files of states.
io::ElementType elementType(DType dtype) {
  static constexpr io::ElementType kTypes[] = {io::ElementType::F32, io::ElementType::I32, io::ElementType::U32, io::ElementType::U32};
  return kTypes[static_cast<size_t>(dtype)];
}

template <class Number>
io::Array arrayOf(const graph::TensorType& type, std::span<const Number> values) {
  io::Array array{elementType(type.dtype), type.shape.extents(), std::vector<std::byte>(values.size() * sizeof(uint32_t))};
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t word = type.dtype == DType::F32 ? std::bit_cast<uint32_t>(static_cast<float>(values[i]))
                                                   : static_cast<uint32_t>(static_cast<int64_t>(values[i]));
    std::memcpy(array.data.data() + i * sizeof word, &word, sizeof word);
  }
  return array;
}

io::Array filled(const StateInfo& info) {
  const std::vector<double> values(static_cast<size_t>(info.type.shape.elementCount()), info.initial);
  return arrayOf<double>(info.type, values);
}

}  // namespace

io::Array stateArray(const graph::TensorType& type, std::span<const float> values) { return arrayOf(type, values); }

io::Array zeroState(const graph::TensorType& type) { return io::Array::zeros(elementType(type.dtype), type.shape.extents()); }

std::map<std::string, StateInfo, std::less<>> persistentStates(const States& states) {
  auto infos = states.infos();
  std::erase_if(infos, [](const auto& entry) { return !entry.second.persistent; });
  return infos;
}

// Memory of a device goes back to it, which is a call like any other.
States::~States() {
  std::lock_guard turn(*device_.turn);
  states_.clear();
}

std::shared_ptr<Memory> States::declare(const std::string& name, const StateInfo& info) {
  std::lock_guard lock(mutex_);
  if (auto known = states_.find(name); known != states_.end()) {
    if (known->second.info.type != info.type) internalError(fmt::format("state '{}' has two types", name));
    return known->second.memory;
  }
  const uint64_t bytes = (info.type.byteSize() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  State state{info, nullptr};
  {
    std::lock_guard turn(*device_.turn);
    state.memory = device_.backend->allocate(bytes).orThrow();
  }
  writeBytes(state, filled(info).data);
  return states_.emplace(name, std::move(state)).first->second.memory;
}

bool States::has(std::string_view name) const {
  std::lock_guard lock(mutex_);
  return states_.find(name) != states_.end();
}

std::map<std::string, StateInfo, std::less<>> States::infos() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, StateInfo, std::less<>> infos;
  for (const auto& [name, state] : states_) infos.emplace(name, state.info);
  return infos;
}

States::State States::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  auto found = states_.find(name);
  if (found == states_.end()) internalError(fmt::format("there is no state '{}'", name));
  return found->second;
}

io::Array States::read(std::string_view name) const {
  const State state = find(name);
  io::Array array = zeroState(state.info.type);
  std::lock_guard turn(*device_.turn);
  (void)state.memory->read(0, array.data).orThrow();
  return array;
}

void States::writeBytes(const State& state, std::span<const std::byte> bytes) {
  std::lock_guard turn(*device_.turn);
  (void)state.memory->write(0, bytes).orThrow();
}

void States::write(std::string_view name, const io::Array& values) {
  const State state = find(name);
  if (values.type != elementType(state.info.type.dtype) || values.data.size() != state.info.type.byteSize())
    internalError(fmt::format("state '{}' is {} but gets {}", name, toString(state.info.type), describe(values)));
  writeBytes(state, values.data);
}

std::vector<float> States::readFloats(std::string_view name) const { return read(name).toFloats(); }

void States::writeFloats(std::string_view name, std::span<const float> values) {
  const State state = find(name);
  if (state.info.type.dtype != DType::F32 || static_cast<int64_t>(values.size()) != state.info.type.shape.elementCount())
    internalError(fmt::format("state '{}' is {} but gets {} numbers", name, toString(state.info.type), values.size()));
  writeBytes(state, std::as_bytes(values));
}

void States::fill(std::string_view name) {
  const State state = find(name);
  writeBytes(state, filled(state.info).data);
}

}  // namespace lockstep::detail
