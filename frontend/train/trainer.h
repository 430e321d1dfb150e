// SPDX-License-Identifier: Apache-2.0
// compile<Model>(...) traces a loss and gives a Trainer: training steps on a device. attach() adds forward programs that share its
// parameters. Mistakes are thrown as lockstep::Error before anything is changed; what goes wrong in a step is in its StepResult.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/optim/optim.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/module.h"
#include "frontend/train/checkpoint_data.h"
#include "frontend/train/forward.h"
#include "frontend/train/program_facts.h"
#include "frontend/train/state_dict.h"
#include "frontend/train/step_profile.h"
#include "frontend/train/step_result.h"
#include "ir/support/finding.h"
#include "ir/support/where.h"

namespace lockstep {

/// Where a parameter lies in the flat state, in elements.
struct ParameterSlot {
  std::string name;
  TensorType type;
  bool decay = true;
  int64_t offset = 0, size = 0;
};

struct StepOptions {
  bool captures = false;  ///< read the captures back; the first time compiles a program that has them
};

/// What goes back to how compile() made it.
struct ResetOptions {
  bool parameters = true;  ///< the initial values of the seed; buffers too
  bool optimizer = true;   ///< moments to zero
  bool step = true;        ///< step counter (and with it random numbers) to 0
  bool schedule = true;    ///< the learning rate that compile() or replace_model() was given
};

struct ReplaceOptions {
  std::optional<uint64_t> seed = {};            ///< of the parameters; absent: random
  std::optional<OptimizerSpec> optimizer = {};  ///< of the same kind; absent: as it is
};

namespace detail {
struct CompileRequest;
struct ReplaceRequest;
}  // namespace detail

/// Calls from several threads run one after the other, in the order in which they came; a call that fails does not hold up the next.
/// A batch function must not call the trainer again, except for its getters (Error "trainer.busy").
class Trainer {
 public:
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// One training step. Every declared input must be in the batch with its element type and length; errors "batch.*"
  /// (frontend/train/batch.h) leave step counter and states alone. Dynamic extents share programs (docs/training.md).
  StepResult step(const Batch& batch, StepOptions options = {}, Where where = Where::current());
  /// `count` steps in one submission; batch(i) gives the data of the i-th, which is copied before the next one is asked for.
  std::vector<StepResult> steps(size_t count, const std::function<Batch(size_t)>& batch, StepOptions options = {},
                                Where where = Where::current());
  /// The same without waiting: the host may prepare more while the device works. Each ticket is waited for once.
  uint64_t enqueue(size_t count, const std::function<Batch(size_t)>& batch, StepOptions options = {}, Where where = Where::current());
  std::vector<StepResult> wait(uint64_t ticket, Where where = Where::current());
  /// One training step with the time of each command on the device, which takes longer than step(): commands run one after the other.
  /// Errors "batch.*" as of step(); Error "vulkan.timestamps" for a device without them.
  StepProfile profile(const Batch& batch, Where where = Where::current());

  /// All parameters and buffers, by path name.
  [[nodiscard]] ParameterValues download() const;
  /// The averages of the parameters that ema_decay of the optimizer asks for, with the buffers. Error "parameters.ema" without them.
  [[nodiscard]] ParameterValues download_ema(Where where = Where::current()) const;
  /// Sets all parameters and buffers; averages begin again there. Errors "parameters.unknown", "parameters.missing", "parameters.length"
  /// before anything is written.
  void upload(const ParameterValues& values, Where where = Where::current());
  void reset(ResetOptions options = {});

  /// The whole training state as safetensors, written atomically: parameters, moments and other states, step counter, seed, schedule,
  /// optimizer, and the caller's own place in its data.
  void save(const std::filesystem::path& path, const DataCursor& cursor = {}, Where where = Where::current()) const;
  /// What save() wrote, for the same parameters and optimizer; gives the cursor. The schedule of the file goes on. Errors "checkpoint.*"
  /// with exit code IncompatibleCheckpoint that name the first difference, before anything is changed.
  DataCursor load(const std::filesystem::path& path, Where where = Where::current());
  [[nodiscard]] io::TensorFile checkpoint(const DataCursor& cursor = {}) const;
  DataCursor restore(const io::TensorFile& file, Where where = Where::current());

  /// The metadata of such a file: optimizer, schedule, parameters and states, as runtime/checkpoint_file.h lists them. Reads no tensors.
  [[nodiscard]] std::map<std::string, std::string, std::less<>> settings() const;

  /// The parameters under PyTorch's names and in its layout (frontend/train/state_dict.h), and back; moments and step counter stay.
  [[nodiscard]] io::TensorFile state_dict() const;
  LoadReport load_state_dict(const io::TensorFile& file, LoadOptions options = {}, Where where = Where::current());

  /// From the next step on. A schedule without start_step begins at the next step; step counter and moments stay. Errors "schedule.number"
  /// and "schedule.steps" for one that cannot be a learning rate; a step whose rate is none throws "schedule.number" before it runs.
  void set_lr(Schedule schedule, Where where = Where::current());
  /// The rate of the next step.
  [[nodiscard]] double lr() const;
  [[nodiscard]] uint64_t step_count() const;  ///< steps that were submitted
  [[nodiscard]] uint64_t seed() const;
  [[nodiscard]] std::vector<ParameterSlot> parameter_layout() const;
  [[nodiscard]] ProgramFacts facts() const;
  /// What the sanitizer found so far in the kernels of all steps, where the device is "sanitizer"; see docs/sanitizer.md.
  [[nodiscard]] std::vector<Finding> findings() const;
  [[nodiscard]] RunFacts run_facts() const;
  [[nodiscard]] Where compiled_at() const;  ///< the call of compile()

  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);

 protected:
  [[nodiscard]] const Module& module() const;
  [[nodiscard]] Forward attachForward(detail::ForwardRequest request) const;
  void replaceModel(detail::ReplaceRequest request);

 private:
  std::unique_ptr<Impl> impl_;
};

template <class Model>
struct CompileSpec {
  std::vector<InputSpec> inputs = {};
  /// A scalar f32, traced once for each program.
  std::function<Tensor(const Model&, const Inputs&)> loss;
  OptimizerSpec optimizer = adam();
  Precision precision = {};               ///< mixed(bf16) or mixed(f16): products are kept in fewer bits; also those of attached forwards
  std::optional<uint64_t> seed = {};      ///< of the parameters; absent: random, see Trainer::seed()
  std::string device = "auto";            ///< auto, reference, vulkan, vulkan:<index>, vulkan:<part of the name>, sanitizer
  std::string dump_ir = {};               ///< folder for the first program after each pass and its kernels; empty: none
  int64_t dump_steps = 1;                 ///< of how many steps the folder has the batches
  std::vector<std::string> disable = {};  ///< optional passes to leave out
  uint64_t memory_limit = 0;              ///< bytes of temporaries; 0: none
  /// Runs whose gradients are averaged before one update: a large batch in less memory. Inputs are declared with the extents of one run; a
  /// step takes accumulate times as many elements of an input, the runs one after the other along axis 0, or as many as were declared for
  /// an input that all runs share. An input with a dynamic extent is always cut: the extent of a run is that of the step / accumulate. The
  /// loss of a step is the mean over its runs, its captures are those of the last one. For a loss that is a mean over the batch the step is
  /// that of the whole batch.
  int64_t accumulate = 1;
  size_t cached_programs = 8;                         ///< programs for dynamic extents and captures that are kept
  PrintFunction print = {};                           ///< gets the lines of ls::print; absent: stderr
  bool find_non_finite = true;                        ///< when a loss is not finite, run once more to find where that began
  bool check_indices = true;                          ///< a label or index outside of its range is an error; else it adds 0
  std::function<std::unique_ptr<Model>()> make = {};  ///< for models without a default constructor
};

namespace detail {

template <class Model>
CompileSettings settingsOf(const CompileSpec<Model>& spec) {
  return {.inputs = spec.inputs,
          .seed = spec.seed,
          .device = spec.device,
          .dump_ir = spec.dump_ir,
          .dump_steps = spec.dump_steps,
          .disable = spec.disable,
          .memory_limit = spec.memory_limit,
          .accumulate = spec.accumulate,
          .cached_programs = spec.cached_programs,
          .print = spec.print,
          .find_non_finite = spec.find_non_finite,
          .check_indices = spec.check_indices,
          .precision = spec.precision};
}

struct CompileRequest {
  std::shared_ptr<const Module> model;
  ModelFunction loss;
  OptimizerSpec optimizer;
  CompileSettings settings;
  Where where;
};

struct ReplaceRequest {
  std::shared_ptr<const Module> model;
  ReplaceOptions options;
  Where where;
};

Trainer compile(CompileRequest request);

template <class Model>
std::shared_ptr<const Model> makeModel(const std::function<std::unique_ptr<Model>()>& make) {
  if (make) return make();
  if constexpr (std::is_default_constructible_v<Model>) return std::make_shared<const Model>();
  return nullptr;
}

}  // namespace detail

/// A Trainer that knows the type of its model.
template <class Model>
class ModelTrainer : public Trainer {
 public:
  explicit ModelTrainer(Trainer trainer) : Trainer(std::move(trainer)) {}
  /// Until replace_model().
  [[nodiscard]] const Model& model() const { return static_cast<const Model&>(module()); }
  /// A forward program that shares the parameters; it sees every later update.
  [[nodiscard]] Forward attach(ForwardSpec<Model> spec, Where where = Where::current()) const {
    return attachForward({.forward = detail::eraseModel(std::move(spec.forward)), .settings = detail::settingsOf(spec), .where = where});
  }
  /// Trains another model from its beginning, with the same loss function and inputs. It is compiled first; if that fails the old one goes
  /// on. Attached forwards go over to the new model and its parameters. Error "replace.optimizer" for another kind of optimizer.
  void replace_model(const std::function<std::unique_ptr<Model>()>& make, const ReplaceOptions& options = {},
                     Where where = Where::current()) {
    replaceModel({.model = detail::makeModel<Model>(make), .options = options, .where = where});
  }
};

/// Makes the model, traces its loss and compiles the training step for a device. With dynamic extents that happens in the first step.
/// Errors "grad.C5" for a parameter that gets no gradient because an op stops it, "grad.C6" for a loss that reaches no trained parameter.
template <class Model>
ModelTrainer<Model> compile(CompileSpec<Model> spec, Where where = Where::current()) {
  return ModelTrainer<Model>(detail::compile({.model = detail::makeModel<Model>(spec.make),
                                              .loss = detail::eraseModel(std::move(spec.loss)),
                                              .optimizer = std::move(spec.optimizer),
                                              .settings = detail::settingsOf(spec),
                                              .where = where}));
}

}  // namespace lockstep
