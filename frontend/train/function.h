// SPDX-License-Identifier: Apache-2.0
// function(...): any function of tensors, compiled for a device; with gradients if asked for.
//   auto rosenbrock = ls::function({.inputs = {{"x", ls::f32(2)}},
//                                   .body = [](const ls::Inputs& in) { ... return y; },
//                                   .gradients = {"x"}});
//   auto result = rosenbrock({{"x", xs}});            // result.value, result.gradients.at("x")
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/trace/host_values.h"
#include "frontend/trace/inputs.h"
#include "frontend/train/program_facts.h"
#include "ir/support/where.h"

namespace lockstep {

struct FunctionSpec {
  std::vector<InputSpec> inputs;  ///< extents may be dynamic
  std::function<Tensor(const Inputs&)> body;
  std::vector<std::string> gradients = {};  ///< f32 inputs by name; the body then gives an f32 scalar
  std::string device = "auto";
  uint64_t seed = 0;  ///< of the random ops; each call draws new numbers
  std::string dump_ir = {};
  std::vector<std::string> disable = {};  ///< optional passes to leave out
  PrintFunction print = {};               ///< gets the lines of ls::print; absent: stderr
  size_t cached_programs = 8;             ///< dynamic extents whose programs are kept
  bool check_indices = true;              ///< an index outside of its range is an error; else it reads 0 and adds nothing
};

struct FunctionResult {
  HostTensor value;
  std::map<std::string, HostTensor, std::less<>> gradients;
  Captures captures;
};

/// Calls from several threads run one after the other.
class Function {
 public:
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;
  ~Function();

  /// Errors "batch.*" as of a trainer's step and "step.index"; device failures are thrown.
  FunctionResult operator()(const Batch& batch, Where where = Where::current());
  [[nodiscard]] ProgramFacts facts() const;
  [[nodiscard]] RunFacts run_facts() const;

 private:
  struct Impl;
  explicit Function(std::unique_ptr<Impl> impl);
  friend Function function(FunctionSpec spec, Where where);
  std::unique_ptr<Impl> impl_;
};

/// Compiles at once, or at the first call of each extent when there are dynamic ones. Errors: "compile.input", "compile.function",
/// "compile.loss" when gradients of something else than a scalar are asked for, "grad.C3" for a gradient by an unknown input, "grad.C4" by
/// one that is not f32, and whatever the body throws.
Function function(FunctionSpec spec, Where where = Where::current());

}  // namespace lockstep
