// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_states.h"

#include <fmt/format.h>

#include "ir/support/diagnostic.h"
#include "runtime/memory_array.h"

namespace lockstep::detail {

using graph::DType;

namespace {

constexpr uint64_t kArenaAlignment = 256;  // planBuffers rounds arenas up to it

constexpr int64_t kFillElements = int64_t{1} << 20;  // per write: a multiple of a word in each element type

/// The bytes of `elements` of the state, all with its initial value.
std::vector<std::byte> filled(const StateInfo& info, int64_t elements) {
  return encodeArray({info.type.dtype, graph::Shape({elements})}, std::vector(static_cast<size_t>(elements), info.initial)).data;
}

}  // namespace

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
  fill(state);
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
  std::vector<std::byte> words(state.info.type.byteSize());
  {
    std::lock_guard turn(*device_.turn);
    (void)state.memory->read(0, words).orThrow();
  }
  words.resize(elementBytes(state.info.type));
  return {.type = elementType(state.info.type.dtype), .shape = state.info.type.shape.extents(), .data = std::move(words)};
}

void States::writeBytes(const State& state, std::span<const std::byte> bytes) {
  std::vector<std::byte> words;
  if (const uint64_t whole = state.info.type.byteSize(); bytes.size() != whole) {
    words.assign(bytes.begin(), bytes.end());
    words.resize(whole);
    bytes = words;
  }
  std::lock_guard turn(*device_.turn);
  (void)state.memory->write(0, bytes).orThrow();
}

void States::write(std::string_view name, const io::Array& values) {
  const State state = find(name);
  if (values.type != elementType(state.info.type.dtype) || values.data.size() != elementBytes(state.info.type))
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

void States::writeFloatsAt(std::string_view name, int64_t element, std::span<const float> values) {
  const State state = find(name);
  if (state.info.type.dtype != DType::F32 || element < 0 ||
      element + static_cast<int64_t>(values.size()) > state.info.type.shape.elementCount())
    internalError(fmt::format("state '{}' is {} but gets {} numbers from {} on", name, toString(state.info.type), values.size(), element));
  if (values.empty()) return;
  std::lock_guard turn(*device_.turn);
  (void)state.memory->write(static_cast<uint64_t>(element) * sizeof(float), std::as_bytes(values)).orThrow();
}

void States::fill(std::string_view name) { fill(find(name)); }

// A large state is written in parts, which are all the same: the host needs no copy of the whole.
void States::fill(const State& state) {
  const int64_t elements = state.info.type.shape.elementCount();
  if (elements <= kFillElements) {
    writeBytes(state, filled(state.info, elements));
    return;
  }
  const std::vector<std::byte> part = filled(state.info, kFillElements);
  std::vector<std::byte> rest = filled(state.info, elements % kFillElements);
  const uint64_t whole = state.info.type.byteSize(), parts = static_cast<uint64_t>(elements / kFillElements);
  rest.resize(whole - parts * part.size());
  std::lock_guard turn(*device_.turn);
  for (uint64_t i = 0; i < parts; ++i) (void)state.memory->write(i * part.size(), part).orThrow();
  if (!rest.empty()) (void)state.memory->write(parts * part.size(), rest).orThrow();
}

}  // namespace lockstep::detail
