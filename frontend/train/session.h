// SPDX-License-Identifier: Apache-2.0
// Private to the front end: one traced graph compiled for a device. It works on states that others own, so several programs can share
// them and each can go without a trace.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/trace/host_values.h"
#include "frontend/train/device_states.h"
#include "frontend/train/step_profile.h"
#include "passes/graph/check_indices.h"
#include "passes/pipeline.h"

namespace lockstep::detail {

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
io::Array toArray(const StepValue& value);

/// Calls into the device take the device's turn.
class Session {
 public:
  /// Compiles; states of the program that `states` lacks are declared there. Throws Error.
  Session(graph::Graph traced, passes::CompileOptions options, std::shared_ptr<States> states, std::vector<InputSpec> inputs);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Error "batch.index" where an index of the batch is outside of its range; the batch may be that of several runs. `when` ends its
  /// message
  /// ("step 5").
  void checkIndices(const Batch& batch, std::string_view when) const;
  /// The bytes of the Input arena for one step. Errors of matchBatch(); nothing is submitted then.
  [[nodiscard]] std::vector<std::byte> encode(const Batch& batch, const StepValues& values) const;
  /// What encode() was given, without inputs that the program does not read.
  [[nodiscard]] std::vector<HostTensor> decode(const std::vector<std::byte>& input) const;
  Result<Ticket> submit(const std::vector<std::vector<std::byte>>& inputs);
  /// The Output arena of each step of a submission.
  Result<std::vector<std::vector<std::byte>>> wait(Ticket ticket);
  /// submit() and wait() for one step; throws Error.
  std::vector<std::byte> run(std::vector<std::byte> input);
  /// One step with the time of each command.
  std::vector<ProfiledCommand> time(const std::vector<std::byte>& input);
  [[nodiscard]] uint64_t inputBytes() const { return input_bytes_; }
  [[nodiscard]] uint64_t outputBytes() const;
  /// Gives each ls::print of a step to `print`, or to stderr; `when` begins the line.
  void printOutputs(const std::vector<std::byte>& arena, std::string_view when, const PrintFunction& print) const;
  /// The first index that a step computed and that is outside of its range, as Error "step.index".
  [[nodiscard]] std::optional<Diagnostic> wrongIndex(const std::vector<std::byte>& arena, std::string_view when) const;
  /// The values of one output kind in a step's Output arena, in the order of the program.
  [[nodiscard]] std::vector<HostTensor> outputs(const std::vector<std::byte>& arena, graph::OutputKind kind) const;

  [[nodiscard]] const graph::Graph& traced() const { return traced_; }
  [[nodiscard]] const program::Program& program() const { return **program_; }
  [[nodiscard]] const passes::PlanSummary& plan() const { return plan_; }
  [[nodiscard]] const std::vector<passes::PassRecord>& passRecords() const { return passes_; }
  [[nodiscard]] ExecutionStatistics statistics() const;

 private:
  void declareStates(const graph::Graph& graph);

  std::shared_ptr<States> states_;
  ArenaSet arenas_;  ///< those of the program
  std::vector<InputSpec> inputs_;
  graph::Graph traced_;
  std::vector<passes::IndexCheck> checks_;  ///< empty where nobody asks
  passes::PlanSummary plan_;
  std::vector<passes::CommandWork> work_;
  std::vector<passes::PassRecord> passes_;
  std::unique_ptr<program::ValidProgram> program_;
  uint64_t input_bytes_ = 0;
  std::unique_ptr<Executable> executable_;  // last: it uses all of the above
};

}  // namespace lockstep::detail
