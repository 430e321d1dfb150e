// SPDX-License-Identifier: Apache-2.0
// Private to the front end: one traced graph compiled for a device, and its batches and outputs as users see them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/trace/host_values.h"
#include "frontend/train/shared_extents.h"
#include "frontend/train/step_profile.h"
#include "passes/graph/check_indices.h"
#include "passes/pipeline.h"
#include "runtime/execution.h"

namespace lockstep::detail {

class Session {
 public:
  /// Compiles; states of the program that `states` lacks are declared there. Throws Error.
  Session(graph::Graph traced, passes::CompileOptions options, std::shared_ptr<States> states, std::vector<InputSpec> inputs);
  /// One for several extents of the dynamic axes, which `inputs` still have.
  Session(std::shared_ptr<const SharedExtents> shared, passes::CompileOptions options, std::shared_ptr<States> states,
          std::vector<InputSpec> inputs);

  /// The numbers of a program for several extents at one of them; to be told before its first batch of that extent.
  void serve(int64_t extent, const std::vector<double>& numbers) { numbers_.try_emplace(extent, numbers); }
  /// Error "batch.index" where an index of the batch is outside of its range; the batch may be that of several runs, each with that extent
  /// of the dynamic axes. `when` ends its message ("step 5").
  void checkIndices(const Batch& batch, int64_t extent, std::string_view when) const;
  /// The inputs that the program says how to make.
  [[nodiscard]] StepValues stepValues(const RunNumbers& numbers) const { return execution_->stepValues(numbers); }
  /// The bytes of the Input arena for one step. Errors of matchBatch(); nothing is submitted then.
  [[nodiscard]] std::vector<std::byte> encode(const Batch& batch, const StepValues& values) const;
  /// What encode() was given, without inputs that the program does not read; of a step with that extent of the dynamic axes.
  [[nodiscard]] std::vector<HostTensor> decode(const std::vector<std::byte>& input, int64_t extent = 0) const;
  Result<Ticket> submit(const std::vector<std::vector<std::byte>>& inputs) { return execution_->submit(inputs); }
  /// The Output arena of each step of a submission.
  Result<std::vector<std::vector<std::byte>>> wait(Ticket ticket) { return execution_->wait(ticket); }
  /// submit() and wait() for one step; throws Error.
  std::vector<std::byte> run(std::vector<std::byte> input);
  /// One step with the time of each command.
  std::vector<ProfiledCommand> time(const std::vector<std::byte>& input);
  [[nodiscard]] uint64_t inputBytes() const { return execution_->inputBytes(); }
  [[nodiscard]] uint64_t outputBytes() const { return execution_->outputBytes(); }
  /// Gives each ls::print of a step to `print`, or to stderr; `when` begins the line.
  void printOutputs(const std::vector<std::byte>& arena, std::string_view when, const PrintFunction& print) const;
  /// The first index that a step computed and that is outside of its range, as Error "step.index".
  [[nodiscard]] std::optional<Diagnostic> wrongIndex(const std::vector<std::byte>& arena, std::string_view when) const;
  /// Of all gradients together, where the program gives it.
  [[nodiscard]] std::optional<float> gradientNorm(const std::vector<std::byte>& arena) const;
  /// Of the gradients, where the program scales the loss.
  [[nodiscard]] std::optional<float> lossScale(const std::vector<std::byte>& arena) const;
  /// The values of one output kind in a step's Output arena, in the order of the program; of a step with that extent of the dynamic axes.
  [[nodiscard]] std::vector<HostTensor> outputs(const std::vector<std::byte>& arena, graph::OutputKind kind, int64_t extent = 0) const;

  [[nodiscard]] const graph::Graph& traced() const { return traced_; }
  /// Whether it serves several extents, and traced() is that of none of them.
  [[nodiscard]] bool isShared() const { return shared_ != nullptr; }
  [[nodiscard]] const program::Program& program() const { return execution_->program(); }
  [[nodiscard]] const passes::PlanSummary& plan() const { return plan_; }
  [[nodiscard]] const std::vector<passes::PassRecord>& passRecords() const { return passes_; }
  [[nodiscard]] ExecutionStatistics statistics() const { return execution_->statistics(); }

 private:
  [[nodiscard]] std::optional<float> scalar(std::string_view output, const std::vector<std::byte>& arena) const;
  [[nodiscard]] graph::OpenAxes openAxesOf(const InputSpec* input) const;  ///< null: not declared
  [[nodiscard]] graph::OpenAxes openAxesOf(const program::OutputPort& port) const;
  /// What counts of it at that extent.
  [[nodiscard]] HostTensor take(const auto& port, const std::vector<std::byte>& arena, const graph::OpenAxes& open, int64_t extent) const;
  [[nodiscard]] HostTensor take(const auto& port, const std::vector<std::byte>& arena) const { return take(port, arena, {}, 0); }
  [[nodiscard]] const InputSpec* findInput(std::string_view name) const;

  std::vector<InputSpec> inputs_;
  std::shared_ptr<const SharedExtents> shared_;     ///< null: a program for one extent
  std::map<int64_t, std::vector<double>> numbers_;  ///< by extent
  graph::Graph traced_;
  std::vector<passes::IndexCheck> checks_;  ///< empty where nobody asks
  passes::PlanSummary plan_;
  std::vector<passes::CommandWork> work_;
  std::vector<passes::PassRecord> passes_;
  std::unique_ptr<Execution> execution_;
};

}  // namespace lockstep::detail
