// SPDX-License-Identifier: Apache-2.0
// compile<Model>(...) traces a loss once and gives a Trainer: a training step on a device. attach() adds forward programs that share its
// parameters. All mistakes are thrown as lockstep::Error before anything is changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/host.h"
#include "frontend/module.h"
#include "frontend/optim.h"
#include "frontend/tensor.h"

namespace lockstep {

namespace io {
struct TensorFile;
}

/// The inputs of a program inside its trace, by name.
class Inputs {
 public:
  explicit Inputs(std::map<std::string, Tensor, std::less<>> tensors) : tensors_(std::move(tensors)) {}
  /// Error "inputs.name" when it was not declared.
  Tensor operator[](std::string_view name) const;

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
};

struct StepResult {
  uint64_t step = 0;  ///< 1-based
  float loss = 0;     ///< before the update of this step
  Captures captures;
};

struct ForwardResult {
  HostTensor output;
  Captures captures;
};

/// What was compiled, and for which device.
struct ProgramFacts {
  std::string device;         ///< "vulkan:0"
  std::string device_name;    ///< as the driver says
  std::string device_reason;  ///< why it was chosen
  uint32_t dispatches = 0, levels = 0, distinct_kernels = 0;
  uint64_t planned_bytes = 0;       ///< all arenas
  uint64_t workspace_bytes = 0;     ///< temporaries, sharing bytes
  uint64_t unpooled_bytes = 0;      ///< temporaries, if they shared none
  int64_t parameters = 0;           ///< trainable numbers
  std::vector<std::string> passes;  ///< "fuse 0.012 s: 120 nodes -> 40 nodes"
};

/// Counters of a device program; device_allocations stays constant after the first step.
struct RunFacts {
  uint64_t submissions = 0, steps = 0, device_allocations = 0, device_bytes = 0;
};

/// Where a parameter lies in the flat state, in elements.
struct ParameterSlot {
  std::string name;
  TensorType type;
  bool decay = true;
  int64_t offset = 0, size = 0;
};

/// A forward program. It stays valid after its Trainer is gone.
class Forward {
 public:
  Forward(Forward&&) noexcept;
  Forward& operator=(Forward&&) noexcept;
  ~Forward();
  /// With the parameters as they are now.
  ForwardResult run(const Batch& batch);
  [[nodiscard]] const ProgramFacts& facts() const;

  struct Impl;
  explicit Forward(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

struct ResetOptions {
  bool parameters = true;  ///< back to the initial values of the seed
  bool optimizer = true;   ///< moments to zero, step counter to 0
};

namespace detail {
struct CompileRequest;
struct ForwardRequest;
}  // namespace detail

class Trainer {
 public:
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// One training step. Every declared input must be in the batch with its exact length and element type.
  StepResult step(const Batch& batch);
  /// `count` steps in one submission; batch(i) gives the data of the i-th, which is copied before the next one is asked for.
  std::vector<StepResult> steps(size_t count, const std::function<Batch(size_t)>& batch);
  /// The same without waiting: the host may prepare more while the device works. Each ticket is waited for once, in order.
  uint64_t enqueue(size_t count, const std::function<Batch(size_t)>& batch);
  std::vector<StepResult> wait(uint64_t ticket);
  /// One step, with the seconds that each command took on the device, by its label.
  std::vector<std::pair<std::string, double>> profile(const Batch& batch);

  /// All parameters, by path name.
  [[nodiscard]] ParameterValues download() const;
  /// Sets all parameters. Errors "parameters.unknown", "parameters.missing", "parameters.length" before anything is written.
  void upload(const ParameterValues& values);
  void reset(ResetOptions options = {});

  /// Parameters, moments, step counter and seed as safetensors; written atomically.
  void save(const std::filesystem::path& path) const;
  /// What save() wrote, for the same parameters and optimizer. Errors "checkpoint.*" with exit code IncompatibleCheckpoint, before
  /// anything is changed.
  void load(const std::filesystem::path& path);
  [[nodiscard]] io::TensorFile checkpoint() const;
  void restore(const io::TensorFile& file);

  /// From the next step on. A schedule without start_step begins at the next step; step counter and moments stay.
  void set_lr(Schedule schedule);
  /// The rate of the next step.
  [[nodiscard]] double lr() const;
  [[nodiscard]] uint64_t step_count() const;  ///< steps that were submitted
  [[nodiscard]] uint64_t seed() const;
  [[nodiscard]] std::vector<ParameterSlot> parameter_layout() const;
  [[nodiscard]] const ProgramFacts& facts() const;
  [[nodiscard]] RunFacts run_facts() const;

  struct Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);

 protected:
  [[nodiscard]] const Module& module() const;
  [[nodiscard]] Forward attachForward(detail::ForwardRequest request) const;

 private:
  std::unique_ptr<Impl> impl_;
};

/// A forward program of a trainer's model: inputs by name, one output.
template <class Model>
struct ForwardSpec {
  std::vector<InputSpec> inputs = {};
  std::function<Tensor(const Model&, const Inputs&)> forward;
  std::string dump_ir = {};
  std::vector<std::string> disable = {};  ///< passes to leave out besides those that the trainer leaves out
};

template <class Model>
struct CompileSpec {
  std::vector<InputSpec> inputs = {};
  /// A scalar f32, traced once.
  std::function<Tensor(const Model&, const Inputs&)> loss;
  OptimizerSpec optimizer = adam();
  std::optional<uint64_t> seed = {};                  ///< of the parameters; absent: random, see Trainer::seed()
  std::string device = "auto";                        ///< auto, reference, vulkan, vulkan:<index>, vulkan:<part of the name>
  std::string dump_ir = {};                           ///< folder for the program after each pass and its kernels; empty: none
  std::vector<std::string> disable = {};              ///< optional passes to leave out
  uint64_t memory_limit = 0;                          ///< bytes of temporaries; 0: none
  std::function<std::unique_ptr<Model>()> make = {};  ///< for models without a default constructor
};

namespace detail {

struct ForwardRequest {
  std::vector<InputSpec> inputs;
  std::function<Tensor(const Inputs&)> forward;
  std::string dump_ir;
  std::vector<std::string> disable;
  std::source_location where;
};

struct CompileRequest {
  std::shared_ptr<const Module> model;
  std::vector<InputSpec> inputs;
  std::function<Tensor(const Inputs&)> loss;
  OptimizerSpec optimizer;
  std::optional<uint64_t> seed;
  std::string device, dump_ir;
  std::vector<std::string> disable;
  uint64_t memory_limit = 0;
  std::source_location where;
};

Trainer compile(CompileRequest request);

}  // namespace detail

/// A Trainer that knows the type of its model.
template <class Model>
class ModelTrainer : public Trainer {
 public:
  explicit ModelTrainer(Trainer trainer) : Trainer(std::move(trainer)) {}
  [[nodiscard]] const Model& model() const { return static_cast<const Model&>(module()); }
  /// A forward program that shares the parameters; it sees every later update.
  [[nodiscard]] Forward attach(ForwardSpec<Model> spec, std::source_location where = std::source_location::current()) const {
    const Model& traced = model();
    return attachForward({.inputs = std::move(spec.inputs),
                          .forward = [&traced, forward = std::move(spec.forward)](const Inputs& in) { return forward(traced, in); },
                          .dump_ir = std::move(spec.dump_ir),
                          .disable = std::move(spec.disable),
                          .where = where});
  }
};

/// Makes the model, traces its loss and compiles the training step for a device.
template <class Model>
ModelTrainer<Model> compile(CompileSpec<Model> spec, std::source_location where = std::source_location::current()) {
  std::shared_ptr<const Model> model;
  if (spec.make) {
    model = spec.make();
  } else if constexpr (std::is_default_constructible_v<Model>) {
    model = std::make_shared<const Model>();
  }
  std::function<Tensor(const Inputs&)> loss;
  if (model && spec.loss)
    loss = [traced = model.get(), function = std::move(spec.loss)](const Inputs& in) { return function(*traced, in); };
  return ModelTrainer<Model>(detail::compile({.model = model,
                                              .inputs = std::move(spec.inputs),
                                              .loss = std::move(loss),
                                              .optimizer = std::move(spec.optimizer),
                                              .seed = spec.seed,
                                              .device = std::move(spec.device),
                                              .dump_ir = std::move(spec.dump_ir),
                                              .disable = std::move(spec.disable),
                                              .memory_limit = spec.memory_limit,
                                              .where = where}));
}

}  // namespace lockstep
