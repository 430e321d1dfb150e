// SPDX-License-Identifier: Apache-2.0
// Forward: a program of a trainer's model that only computes. Trainer::attach makes one.
#pragma once

#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "frontend/trace/host_values.h"
#include "frontend/trace/inputs.h"
#include "frontend/trace/module.h"
#include "frontend/train/program_facts.h"

namespace lockstep {

struct ForwardResult {
  HostTensor output;
  Captures captures;  ///< empty unless they were asked for
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
  /// or an index outside of its range) as Error too. The first call with another dynamic extent compiles a program for it.
  ForwardResult run(const Batch& batch, RunOptions options = {}, std::source_location where = std::source_location::current());
  [[nodiscard]] ProgramFacts facts() const;
  [[nodiscard]] RunFacts run_facts() const;

  struct Impl;
  explicit Forward(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Inputs by name, one output.
template <class Model>
struct ForwardSpec {
  std::vector<InputSpec> inputs = {};
  std::function<Tensor(const Model&, const Inputs&)> forward;
  std::string dump_ir = {};
  std::vector<std::string> disable = {};  ///< passes to leave out besides those that the trainer leaves out
  bool use_ema = false;                   ///< with the averages of the parameters (ema_decay of the optimizer)
  bool check_indices = true;              ///< as of the trainer, where it is off for forwards too
  size_t cached_programs = 8;             ///< programs for other dynamic extents and captures that are kept
};

namespace detail {

/// A function of a model whose type the library does not know.
using ModelFunction = std::function<Tensor(const Module&, const Inputs&)>;

template <class Model>
ModelFunction eraseModel(std::function<Tensor(const Model&, const Inputs&)> function) {
  if (!function) return {};
  return [function = std::move(function)](const Module& model, const Inputs& in) { return function(static_cast<const Model&>(model), in); };
}

struct ForwardRequest {
  std::vector<InputSpec> inputs;
  ModelFunction forward;
  std::string dump_ir;
  std::vector<std::string> disable;
  bool use_ema = false;
  bool check_indices = true;
  size_t cached_programs = 8;
  std::source_location where;
  uint64_t seed = 0;         ///< of the random ops; set by the trainer
  PrintFunction print = {};  ///< likewise
};

}  // namespace detail
}  // namespace lockstep
