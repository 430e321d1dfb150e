// SPDX-License-Identifier: Apache-2.0
// A model that only computes, without a trainer: ls::forward<Model>({...}) and the weights of a file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/train/forward.h"
#include "frontend/train/state_dict.h"
#include "frontend/train/trainer.h"
#include "ir/support/where.h"

namespace lockstep {

template <class Model>
struct InferenceSpec {
  std::vector<InputSpec> inputs = {};
  /// A tensor, or Outputs of several; traced once for each program.
  std::function<Outputs(const Model&, const Inputs&)> forward;
  std::string device = "auto";                        ///< as of CompileSpec
  std::optional<uint64_t> seed = {};                  ///< of random ops, and of the parameters until load(); absent: random
  std::string dump_ir = {};                           ///< folder for the first program after each pass and its kernels; empty: none
  std::vector<std::string> disable = {};              ///< optional passes to leave out
  uint64_t memory_limit = 0;                          ///< bytes of temporaries; 0: none
  size_t cached_programs = 8;                         ///< programs for dynamic extents and captures that are kept
  PrintFunction print = {};                           ///< gets the lines of ls::print; absent: stderr
  bool updates_buffers = false;                       ///< Buffer::update() is allowed, and the next run begins with what it set
  bool check_indices = true;                          ///< an index outside of its range is an error; else what it gives is 0
  Precision precision = {};                           ///< mixed(bf16): as it was trained
  std::function<std::unique_ptr<Model>()> make = {};  ///< for models without a default constructor
};

/// Its parameters have the values of their initializers until load(). Calls from several threads run one after the other.
class Inference {
 public:
  Inference(Inference&&) noexcept;
  Inference& operator=(Inference&&) noexcept;
  ~Inference();

  /// As Forward::run.
  ForwardResult run(const Batch& batch, RunOptions options = {}, Where where = Where::current());

  /// As Forward::profile.
  StepProfile profile(const Batch& batch, Where where = Where::current());

  /// Reads the weights of a file: a checkpoint of a trainer, by the names of the parameters and buffers, or a state dict, as
  /// load_state_dict() does. Nothing changes when it fails. Errors of readSafetensors(), "safetensors.checksum", those of readStateDict(),
  /// and for a checkpoint "checkpoint.missing" or "checkpoint.shape" with the tensor's name.
  LoadReport load(const std::filesystem::path& path, LoadOptions options = {}, Where where = Where::current());
  LoadReport load_state_dict(const io::TensorFile& file, LoadOptions options = {}, Where where = Where::current());
  /// All parameters and buffers by name. Errors of Trainer::upload().
  void upload(const ParameterValues& values, Where where = Where::current());
  /// Those parameters and buffers that the file has by their names, bit for bit; the others stay as they are. Errors "parameters.unknown",
  /// "parameters.type" for an array of another element type or shape than the model's.
  void write(const io::TensorFile& values, Where where = Where::current());
  [[nodiscard]] ParameterValues download() const;

  [[nodiscard]] ProgramFacts facts() const;
  [[nodiscard]] RunFacts run_facts() const;

  struct Impl;
  explicit Inference(std::unique_ptr<Impl> impl);

 protected:
  [[nodiscard]] const Module& module() const;
  [[nodiscard]] Forward attachForward(detail::ForwardRequest request) const;

 private:
  std::unique_ptr<Impl> impl_;
};

/// An Inference that knows the type of its model.
template <class Model>
class ModelInference : public Inference {
 public:
  explicit ModelInference(Inference inference) : Inference(std::move(inference)) {}
  [[nodiscard]] const Model& model() const { return static_cast<const Model&>(module()); }
  /// Another program of the same model, with the same parameters and buffers. It stays valid after the inference is gone. Errors as of
  /// forward().
  [[nodiscard]] Forward attach(ForwardSpec<Model> spec, Where where = Where::current()) const {
    return attachForward({.forward = detail::eraseModel(std::move(spec.forward)), .settings = detail::settingsOf(spec), .where = where});
  }
};

namespace detail {

template <class Model>
CompileSettings settingsOf(const InferenceSpec<Model>& spec) {
  CompileSettings settings;
  settings.inputs = spec.inputs;
  settings.seed = spec.seed;
  settings.device = spec.device;
  settings.dump_ir = spec.dump_ir;
  settings.disable = spec.disable;
  settings.memory_limit = spec.memory_limit;
  settings.cached_programs = spec.cached_programs;
  settings.print = spec.print;
  settings.check_indices = spec.check_indices;
  settings.updates_buffers = spec.updates_buffers;
  settings.precision = spec.precision;
  return settings;
}

Inference makeInference(std::shared_ptr<const Module> model, ForwardRequest request);

}  // namespace detail

/// Makes the model, traces its function and compiles it for a device. With dynamic extents that happens in the first run. Errors as of
/// compile().
///   auto net = ls::forward<Mlp>({.inputs = {{"x", ls::f32(8, 2)}}, .forward = [](const Mlp& net, const ls::Inputs& in) { return
///   net(in["x"]); }}); net.load("weights.safetensors");
template <class Model>
ModelInference<Model> forward(InferenceSpec<Model> spec, Where where = Where::current()) {
  return ModelInference<Model>(detail::makeInference(
      detail::makeModel<Model>(spec.make),
      {.forward = detail::eraseModel(std::move(spec.forward)), .settings = detail::settingsOf(spec), .where = where}));
}

}  // namespace lockstep
