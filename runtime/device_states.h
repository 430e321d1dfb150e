// SPDX-License-Identifier: Apache-2.0
// Private to the library: the one owner of what outlives a step (parameters, moments, buffers) on a device, by name. Programs come and
// go; they all work on the same states.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/array.h"
#include "ir/graph/type.h"
#include "runtime/device.h"

namespace lockstep::detail {

struct StateInfo {
  graph::TensorType type;
  double initial = 0;  ///< what every element starts as
  /// False: it holds something only within a step (packed gradients) and belongs in no checkpoint.
  bool persistent = true;
};

/// Safe for concurrent calls. Reads and writes wait for all steps that were submitted before. Device failures are thrown as Error.
class States {
 public:
  explicit States(Device device) : device_(std::move(device)) {}
  ~States();
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  /// Allocates and fills a state unless it is there, and gives its memory; InternalError when it is there with another type.
  std::shared_ptr<Memory> declare(const std::string& name, const StateInfo& info);
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::map<std::string, StateInfo, std::less<>> infos() const;

  /// Of the state's element type; a bool is a u32.
  [[nodiscard]] io::Array read(std::string_view name) const;
  /// InternalError when the array has another type or number of elements.
  void write(std::string_view name, const io::Array& values);
  /// Of a state of any type.
  [[nodiscard]] std::vector<float> readFloats(std::string_view name) const;
  /// Of an f32 state.
  void writeFloats(std::string_view name, std::span<const float> values);
  /// A part of an f32 state, from an element on.
  void writeFloatsAt(std::string_view name, int64_t element, std::span<const float> values);
  /// Back to the initial value.
  void fill(std::string_view name);

  [[nodiscard]] const Device& device() const { return device_; }

 private:
  struct State {
    StateInfo info;
    std::shared_ptr<Memory> memory;
  };
  /// InternalError when there is none.
  [[nodiscard]] State find(std::string_view name) const;
  /// `bytes` are its elements; the rest of the last word becomes zero.
  void writeBytes(const State& state, std::span<const std::byte> bytes);
  void fill(const State& state);

  Device device_;
  mutable std::mutex mutex_;  ///< of the map, not of the memories
  std::map<std::string, State, std::less<>> states_;
};

/// Those that belong in a checkpoint.
std::map<std::string, StateInfo, std::less<>> persistentStates(const States& states);

}  // namespace lockstep::detail
