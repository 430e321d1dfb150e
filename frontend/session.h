// SPDX-License-Identifier: Apache-2.0
// Private to the front end: a traced graph compiled for a device, with its state. Trainer, Forward and Function are thin around it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "frontend/host.h"
#include "passes/pipeline.h"

namespace lockstep::detail {

/// An open device; programs that share state share it.
struct Device {
  ChosenDevice chosen;
  std::shared_ptr<Backend> backend;
};
/// Error with exit code NoDevice when nothing matches.
Device openChosenDevice(const std::string& selector);

/// A small input that the program itself asks for, beside the batch: learning rate, key of the random numbers. Raw words, as a step sees
/// them.
struct StepValue {
  std::string_view name;
  graph::TensorType type;
  std::vector<uint32_t> words;
};
using StepValues = std::vector<StepValue>;
StepValue stepValue(std::string_view name, std::span<const double> values);  ///< as f32[n]
/// The key of the random ops: a stream apart for each `seed` and each `step` of it.
StepValue randomKey(uint64_t seed, uint64_t step);

class Session {
 public:
  /// Compiles and allocates; states that `shared` holds by name are used, the others are made and filled. Throws Error.
  Session(graph::Graph traced, passes::CompileOptions options, Device device, std::vector<InputSpec> inputs, const ArenaSet& shared = {});

  /// The bytes of the Input arena for one step. Every declared input once, with its element type and length: errors "batch.missing",
  /// "batch.unknown", "batch.twice", "batch.type", "batch.length"; nothing is submitted then.
  [[nodiscard]] std::vector<std::byte> encode(const Batch& batch, const StepValues& values) const;
  Ticket submit(const std::vector<std::vector<std::byte>>& inputs);
  /// The Output arena of each step of a submission.
  std::vector<std::vector<std::byte>> wait(Ticket ticket);
  /// One step with the time of each command, by its label.
  std::vector<std::pair<std::string, double>> time(const std::vector<std::byte>& input);
  /// The values of one output kind in a step's Output arena, in the order of the program.
  [[nodiscard]] std::vector<HostTensor> outputs(const std::vector<std::byte>& arena, graph::OutputKind kind) const;

  [[nodiscard]] bool hasState(std::string_view name) const { return state_.find(name) != state_.end(); }
  [[nodiscard]] std::vector<float> readState(std::string_view name) const;
  /// values.size() is the number of elements of the leaf.
  void writeState(std::string_view name, std::span<const float> values);
  /// Fills a state leaf with its initial value.
  void fillState(std::string_view name);

  [[nodiscard]] const ArenaSet& state() const { return state_; }
  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] const passes::PlanSummary& plan() const { return plan_; }
  [[nodiscard]] const std::vector<passes::PassRecord>& passRecords() const { return passes_; }
  [[nodiscard]] ExecutionStatistics statistics() const { return executable_->statistics(); }
  [[nodiscard]] const std::vector<graph::ParameterInfo>& parameters() const { return (*program_)->parameters; }

 private:
  [[nodiscard]] const program::Buffer& stateBuffer(std::string_view name) const;
  void allocateState(const ArenaSet& shared);

  Device device_;
  std::vector<InputSpec> inputs_;
  passes::PlanSummary plan_;
  std::vector<passes::PassRecord> passes_;
  std::unique_ptr<program::ValidProgram> program_;
  uint64_t input_bytes_ = 0;
  ArenaSet state_;
  std::unique_ptr<Executable> executable_;  // last: it uses all of the above
};

}  // namespace lockstep::detail
