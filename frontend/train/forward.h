// SPDX-License-Identifier: Apache-2.0
// Forward: a program of a trainer's model that only computes. Trainer::attach makes one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/optim/precision.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/inputs.h"
#include "frontend/trace/module.h"
#include "frontend/trace/outputs.h"
#include "frontend/train/program_facts.h"
#include "frontend/train/step_profile.h"
#include "ir/support/where.h"

namespace lockstep {

struct ForwardResult {
  HostTensor output;  ///< of several the first
  Captures captures;  ///< empty unless they were asked for
  Captures outputs;   ///< all of them by name, where the function gives several
};

struct RunOptions {
  bool captures = false;  ///< read the captures back; the first time compiles a program that has them
};

/// It shares the parameters of its trainer, sees every update and every model that replaces the trainer's, and stays valid after the
/// trainer is gone. Calls from several threads run one after the other, in the order in which they came.
class Forward {
 public:
  Forward(Forward&&) noexcept;
  Forward& operator=(Forward&&) noexcept;
  ~Forward();
  /// With the parameters as they are now. Bad batches are thrown as Error before anything runs, device failures and "step.index" (a label
  /// or an index outside of its range) as Error too. Dynamic extents share programs (docs/training.md).
  ForwardResult run(const Batch& batch, RunOptions options = {}, Where where = Where::current());
  /// A run with timestamps, as Trainer::profile(): its outputs are dropped, the buffers that it updates are updated. Error
  /// "vulkan.timestamps" on a device without clocks, and those of run().
  StepProfile profile(const Batch& batch, Where where = Where::current());
  [[nodiscard]] ProgramFacts facts() const;
  [[nodiscard]] RunFacts run_facts() const;

  struct Impl;
  explicit Forward(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Inputs by name, one output or several.
template <class Model>
struct ForwardSpec {
  std::vector<InputSpec> inputs = {};
  std::function<Outputs(const Model&, const Inputs&)> forward;
  std::string dump_ir = {};
  std::vector<std::string> disable = {};    ///< passes to leave out besides those that the trainer leaves out
  bool use_ema = false;                     ///< with the averages of the parameters (ema_decay of the optimizer)
  bool updates_buffers = false;             ///< Buffer::update() is allowed, and the next run begins with what it set
  bool check_indices = true;                ///< as of the trainer, where it is off for forwards too
  size_t cached_programs = 8;               ///< programs for dynamic extents and captures that are kept
  std::optional<Precision> precision = {};  ///< none: that of the trainer or the inference that it is attached to
};

namespace detail {

/// A function of a model whose type the library does not know.
using ModelFunction = std::function<Outputs(const Module&, const Inputs&)>;

template <class Model, class Result>
ModelFunction eraseModel(std::function<Result(const Model&, const Inputs&)> function) {
  if (!function) return {};
  return [function = std::move(function)](const Module& model, const Inputs& in) -> Outputs {
    return function(static_cast<const Model&>(model), in);
  };
}

/// What a compilation is told beside model, function and optimizer; each spec has the fields that make sense for it.
struct CompileSettings {
  std::vector<InputSpec> inputs = {};
  std::optional<uint64_t> seed = {};
  std::string device = "auto";
  std::string dump_ir = {};
  int64_t dump_steps = 1;
  std::vector<std::string> disable = {};
  uint64_t memory_limit = 0;
  int64_t accumulate = 1;
  size_t cached_programs = 8;
  PrintFunction print = {};
  bool find_non_finite = true;
  bool check_indices = true;
  bool use_ema = false;
  bool updates_buffers = false;
  Precision precision = {};
  bool has_own_precision = false;  ///< of a program that is attached
};

template <class Model>
CompileSettings settingsOf(const ForwardSpec<Model>& spec) {
  CompileSettings settings;
  settings.inputs = spec.inputs;
  settings.dump_ir = spec.dump_ir;
  settings.disable = spec.disable;
  settings.cached_programs = spec.cached_programs;
  settings.check_indices = spec.check_indices;
  settings.use_ema = spec.use_ema;
  settings.updates_buffers = spec.updates_buffers;
  settings.precision = spec.precision.value_or(Precision{});
  settings.has_own_precision = spec.precision.has_value();
  return settings;
}

struct ForwardRequest {
  ModelFunction forward;
  CompileSettings settings;
  Where where;
  uint64_t seed = 0;  ///< of the random ops
};

}  // namespace detail
}  // namespace lockstep
