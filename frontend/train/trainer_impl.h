// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what is behind a Trainer. trainer.cpp has the steps, trainer_state.cpp what is saved, loaded and replaced.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "frontend/train/describe_program.h"
#include "frontend/train/non_finite.h"
#include "frontend/train/program_cache.h"
#include "frontend/train/shared_model.h"
#include "frontend/train/step_dump.h"
#include "frontend/train/trainer.h"

namespace lockstep {

struct Trainer::Impl {
  /// Steps that were submitted and not waited for.
  struct OpenTicket {
    std::shared_ptr<detail::Session> session;
    std::shared_ptr<const detail::TrainedModel> model;
    int64_t extent = 0;
    Ticket ticket = 0;
    uint64_t first_step = 0;
    std::vector<std::vector<std::byte>> inputs;  ///< to run a step again that was not finite
    std::vector<double> rates;                   ///< of each step
    std::optional<Failure> failure;              ///< they could not be submitted
    bool captures = false;
    uint64_t revision = 0;  ///< of the states, once these steps are done
  };
  /// The program that finds where numbers stop being finite; made when it is needed.
  struct Diagnosis {
    std::shared_ptr<const detail::TrainedModel> model;
    int64_t extent = 0;
    std::unique_ptr<detail::NonFiniteProbe> probe;
  };

  // Fixed when it is made.
  detail::ModelFunction loss;
  detail::CompileSettings settings;
  Where where;
  detail::Device device;

  mutable detail::Turn turn;  ///< guards what follows
  std::shared_ptr<detail::SharedModel> shared;
  OptimizerSpec optimizer;
  Schedule first_schedule;
  uint64_t seed = 0, step = 0;
  uint64_t revision = 0;   ///< goes up with whatever may change the states
  bool uncertain = false;  ///< a submission or a load() stopped on the way, so the states may be those of no step
  detail::StepDump dump;
  detail::ProgramCache programs;
  ProgramFacts facts;
  std::map<uint64_t, OpenTicket> open;
  uint64_t last_ticket = 0;
  Diagnosis diagnosis;

  explicit Impl(detail::CompileRequest request);

  /// The trainer for one call. Error "trainer.busy" inside a batch function, which would wait for itself.
  [[nodiscard]] std::unique_lock<detail::Turn> enter() const;
  /// The same for getters, which a batch function may call.
  [[nodiscard]] std::unique_lock<detail::Turn> look() const;

  [[nodiscard]] std::shared_ptr<const detail::TrainedModel> makeModel(std::shared_ptr<const Module> module,
                                                                      const OptimizerSpec& with) const;
  [[nodiscard]] detail::ProgramSource sourceOf(const detail::TrainedModel& model) const;
  /// From the cache, or compiled now.
  std::shared_ptr<detail::Session> program(const detail::ProgramKey& key);
  [[nodiscard]] bool isDynamic() const;

  /// Of run `run` (0-based) of step t (1-based), by value, so that later changes of the rate do not reach steps in flight.
  [[nodiscard]] detail::RunNumbers numbers(uint64_t t, int64_t run) const;

  uint64_t enqueue(size_t count, const std::function<Batch(size_t)>& batch, const StepOptions& options);
  std::vector<StepResult> wait(uint64_t ticket);
  StepProfile profile(const Batch& batch);
  /// What a dump has of a run.
  void dumpRun(const std::shared_ptr<detail::Session>& session, const Batch& batch, const detail::StepValues& values,
               const std::vector<std::byte>& input);
  /// Looks for the origin in the runs `inputs` of the step. `later`: the states may have changed
  /// since.
  [[nodiscard]] StepFailure explainNonFinite(const OpenTicket& ticket, const StepResult& result,
                                             std::span<const std::vector<std::byte>> inputs, bool later);
  /// Whether a step that is not finite leaves all states as they were.
  [[nodiscard]] bool skipsNonFinite(const detail::TrainedModel& model) const;

  [[nodiscard]] io::TensorFile checkpoint(const DataCursor& cursor) const;
  [[nodiscard]] std::map<std::string, std::string, std::less<>> metadata() const;
  DataCursor restore(const io::TensorFile& file);
  void reset(const ResetOptions& options);
  void replace(detail::ReplaceRequest request);
};

}  // namespace lockstep
