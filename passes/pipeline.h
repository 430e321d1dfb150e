// SPDX-License-Identifier: Apache-2.0
// The driver: runs the passes in their one order, validates after each, dumps, times and counts. passes/pipeline.cpp is the only place
// with the order; passes/README.md is generated from it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/evaluate.h"
#include "ir/graph/graph.h"
#include "ir/kernel/module.h"
#include "ir/program/program.h"
#include "ir/program/tuning.h"
#include "passes/dump.h"
#include "passes/graph/optimizer_config.h"
#include "passes/plan/command_work.h"
#include "passes/stage.h"

namespace lockstep::passes {

/// Gives the module of a template under override values; supplied by the front end.
using TemplateSource = Result<kernel::Module> (*)(std::string_view name, const std::vector<std::pair<std::string, double>>& overrides);

struct CompileOptions {
  program::DeviceProfile profile;
  std::optional<OptimizerConfig> optimizer;      ///< set: grad and the optimizer run (a training step)
  std::string parameter_state{kParameterState};  ///< without optimizer: the flat state that parameters are views of
  std::string rate;                              ///< with optimizer: formula of the learning rate, for whoever runs the program alone
  std::map<std::string, std::string, std::less<>> checkpoint;  ///< entries of every checkpoint of the program
  bool check_indices = true;                                   ///< run checkIndices
  std::optional<graph::DType> low{};                           ///< f16 or bf16: run autocast with it
  bool strict_f32 = false;                                     ///< whoever sets `profile` leaves the units for f16 out of it
  bool keep_gradients = false;                   ///< without optimizer: run grad and keep the gradient outputs (for `function`)
  std::vector<std::string> wrt;                  ///< leaves to differentiate by; empty: all parameters that are trained
  TemplateSource templates = nullptr;            ///< null: contractions use the generic emitter only, and no op has a template
  std::vector<std::string> disabled;             ///< passes that are left out or run in their plain form, as listPasses says; kernel passes
  std::vector<std::string> preferred_templates;  ///< "attention": taken wherever the device can, however little it saves
  program::TuningTable measured;                 ///< plans that are taken where they fit; empty: all are estimated
  bool verify_each = true;                       ///< validate after each pass
  std::string dump_directory;                    ///< empty: no dump
  uint64_t memory_limit = 0;                     ///< bytes of workspace, at the cost of levels; 0 = none
};

struct PlanSummary {
  uint64_t workspace_bytes = 0;  ///< planned: the workspace arena
  uint64_t unpooled_bytes = 0;   ///< if no bytes were shared
  uint64_t total_bytes = 0;      ///< all arenas, one slot of each ring
  uint32_t dispatches = 0;       ///< commands of every kind
  uint32_t levels = 0;
  uint32_t distinct_kernels = 0;
  uint32_t plans = 0, measured_plans = 0;  ///< chosen for kernels before they are merged; those that a table of measurements gave
};

struct Compiled {
  graph::Graph traced;     ///< as it came in
  graph::Graph optimized;  ///< the last graph before schedule (groups inside)
  program::Program program;
  std::vector<CommandWork> work;  ///< of each command
  PlanSummary plan;
  std::vector<PassRecord> passes;
};

/// Runs the pipeline. A user's mistake is a Failure; a validator that fails after a pass is an InternalError that names the pass and
/// the dump.
Result<Compiled> compile(graph::Graph traced, const CompileOptions& options);

/// The passes up to a stage, without validation, dumps and records: what an evaluator runs has no kernels. The form is a graph up to
/// Stage::Grouped.
Result<Form> compileTo(Stage stage, graph::Graph traced, const CompileOptions& options);

/// A program of any stage after schedule (as a dump has it) with the passes run that it still lacks. Uses the profile, the templates and
/// the disabled passes of the options.
Result<program::Program> runRemainingPasses(program::Program program, const CompileOptions& options);

/// What --disable-pass does to a pass.
enum class Disabling : uint8_t { Refused, LeavesOut, RunsPlain };

/// The stages that a pass takes, from the first to the last: most take one.
struct Stages {
  Stage first, last;
  constexpr Stages(Stage only) : first(only), last(only) {}  // NOLINT(google-explicit-constructor): a stage is a set of one
  constexpr Stages(Stage from, Stage to) : first(from), last(to) {}
  [[nodiscard]] constexpr bool has(Stage stage) const { return first <= stage && stage <= last; }
};
std::string toString(Stages stages);

/// One row of the pipeline, for docs, `lockstep opt` and --disable-pass.
struct PassInfo {
  std::string_view name;
  Stages before;
  Stage after;
  std::string_view summary;
  Disabling disabling = Disabling::Refused;
};
std::vector<PassInfo> listPasses();
/// Those that compile() runs with these options, whatever they disable: some are for GPUs, or for mixed precision.
std::vector<PassInfo> listPasses(const CompileOptions& options);
/// What CompileOptions::disabled may have: optional passes of graphs and of kernels, and choices within them ("loops",
/// "template:attention", ...).
std::vector<std::string_view> namesToDisable();

/// Runs passes by name (for `lockstep opt` and tests), without validation in between. Fails on an unknown name (pipeline.pass) and on a
/// form that is not at a stage that the pass takes (pipeline.stage).
Result<Form> runPasses(Form form, const std::vector<std::string>& names, const CompileOptions& options);

}  // namespace lockstep::passes
