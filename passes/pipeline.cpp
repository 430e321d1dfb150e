// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <type_traits>

#include "ir/support/narrate.h"
#include "ir/support/nearest.h"
#include "ir/support/text.h"
#include "passes/emit/emit.h"
#include "passes/emit/loop_budget.h"
#include "passes/emit/merge_dispatches.h"
#include "passes/fuse/fuse.h"
#include "passes/graph/bind_parameters.h"
#include "passes/graph/check_indices.h"
#include "passes/graph/decompose.h"
#include "passes/graph/grad.h"
#include "passes/graph/optimizer.h"
#include "passes/graph/simplify.h"
#include "passes/graph/split_reductions.h"
#include "passes/kernel/kernel_pipeline.h"
#include "passes/plan/plan_buffers.h"
#include "passes/schedule/schedule.h"
#include "passes/schedule/split_dispatches.h"

namespace lockstep::passes {

using graph::Graph;
using program::Program;

namespace {

bool isDisabled(const CompileOptions& options, std::string_view name) {
  return std::find(options.disabled.begin(), options.disabled.end(), name) != options.disabled.end();
}

/// What to differentiate by: what was asked for, else everything that the optimizer moves.
std::vector<std::string> leavesOf(const Graph& graph, const CompileOptions& options) {
  std::vector<std::string> leaves = options.wrt;
  if (!leaves.empty() || !options.optimizer) return leaves;
  for (const graph::ParameterInfo& parameter : trainedParameters(graph.parameters, *options.optimizer)) leaves.push_back(parameter.name);
  return leaves;
}

Result<Program> optimizeKernels(Program program, const std::vector<std::string>& disabled) {
  for (program::Kernel& kernel : program.kernels) {
    kernel.code = optimizeKernel(std::move(std::get<kernel::Module>(kernel.code)), disabled);
  }
  return program;
}

template <class From, class To>
using Run = Result<To> (*)(const From&, const CompileOptions&);

// Each row's function is the pass itself; the lambdas only pick its configuration out of the options.
struct Pass {
  PassInfo info;
  /// Null: the pass runs. Otherwise whether it applies.
  bool (*applies)(const CompileOptions&);
  std::variant<Run<Graph, Graph>, Run<Graph, Program>, Run<Program, Program>> run;
};

const std::array kPasses{
    Pass{{"checkIndices", "traced", "traced", "outputs that say which label or index is outside of its range", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.check_indices; },
         [](const Graph& g, const CompileOptions&) { return checkIndices(g); }},
    Pass{{"grad", "traced", "differentiated", "gradients of the loss by reverse mode"},
         [](const CompileOptions& o) { return o.optimizer.has_value() || o.keep_gradients; },
         [](const Graph& g, const CompileOptions& o) { return grad(g, {.wrt = leavesOf(g, o), .trains = o.optimizer.has_value()}); }},
    Pass{{"optimizer", "differentiated", "updated", "clipping and the update; parameters become views of flat states"},
         [](const CompileOptions& o) { return o.optimizer.has_value(); },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> {
           if (!o.optimizer) return fail("pipeline.stage", "pass 'optimizer' needs an optimizer, which a text does not name");
           return optimizer(g, *o.optimizer);
         }},
    Pass{{"bindParameters", "traced", "updated", "without an optimizer: parameters become views of the flat state"},
         [](const CompileOptions& o) { return !o.optimizer.has_value(); },
         [](const Graph& g, const CompileOptions& o) { return bindParameters(g, o.parameter_state); }},
    Pass{{"decompose", "updated", "primitive", "softmax, norms and losses become ordinary ops"},
         nullptr,
         [](const Graph& g, const CompileOptions&) { return decompose(g); }},
    Pass{{"simplify", "primitive", "primitive", "folding, algebraic rules, common subexpressions, dead code", Disabling::LeavesOut},
         nullptr,
         [](const Graph& g, const CompileOptions&) { return simplify(g); }},
    Pass{{"splitReductions", "primitive", "primitive", "long reductions to few results run in two stages", Disabling::LeavesOut},
         nullptr,
         [](const Graph& g, const CompileOptions& o) { return splitReductions(g, {o.profile}); }},
    Pass{{"fuse", "primitive", "grouped", "groups: one kernel each", Disabling::RunsPlain},
         nullptr,
         [](const Graph& g, const CompileOptions& o) {
           return fuse(g, {.max_bindings = o.profile.max_storage_buffers, .merge = !isDisabled(o, "fuse")});
         }},
    Pass{{"schedule", "grouped", "scheduled", "plans of kernels, virtual buffers, dependency levels"},
         nullptr,
         [](const Graph& g, const CompileOptions& o) { return schedule(g, {o.profile, o.templates != nullptr}); }},
    Pass{{"splitDispatches", "scheduled", "scheduled", "dispatches above the binding limit run in slices"},
         nullptr,
         [](const Program& p, const CompileOptions& o) { return splitDispatches(p, {o.profile}); }},
    Pass{{"planBuffers", "scheduled", "planned", "lifetimes to offsets in arenas", Disabling::RunsPlain},
         nullptr,
         [](const Program& p, const CompileOptions& o) {
           return planBuffers(p, {!isDisabled(o, "planBuffers"), o.memory_limit, o.profile.whole_buffer_access});
         }},
    Pass{{"emit", "planned", "emitted", "kernel IR by elemental emission and templates"},
         nullptr,
         [](const Program& p, const CompileOptions& o) { return emit(p, {o.profile, o.templates}); }},
    Pass{{"mergeDispatches", "emitted", "emitted", "small dispatches of one level become one", Disabling::LeavesOut},
         nullptr,
         [](const Program& p, const CompileOptions& o) -> Result<Program> { return mergeDispatches(p, o.profile); }},
    Pass{{"kernels", "emitted", "optimized", "the kernel passes below, each kernel on its own", Disabling::LeavesOut},
         nullptr,
         [](const Program& p, const CompileOptions& o) { return optimizeKernels(p, o.disabled); }},
};

bool leavesOut(const Pass& pass, const CompileOptions& options) {
  return pass.info.disabling == Disabling::LeavesOut && isDisabled(options, pass.info.name);
}

/// Runs one row on a stage.
struct Runner {
  const Pass& pass;
  const Stage& stage;
  const CompileOptions& options;

  template <class From, class To>
  Result<Stage> operator()(Run<From, To> run) const {
    const From* in = std::get_if<From>(&stage);
    if (in == nullptr) {
      return fail("pipeline.stage",
                  fmt::format("pass '{}' takes a {}", pass.info.name, std::is_same_v<From, Graph> ? "graph" : "scheduled program"), {},
                  std::is_same_v<From, Graph> ? "put it before 'schedule'" : "put 'schedule' before it");
    }
    Result<To> out = run(*in, options);
    if (!out) return out.failure();
    return Stage(std::move(*out));
  }
};

Result<Stage> runPass(const Pass& pass, const Stage& stage, const CompileOptions& options) {
  return std::visit(Runner{pass, stage, options}, pass.run);
}

std::vector<std::string_view> namesToDisable() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) {
    if (pass.info.disabling != Disabling::Refused) names.push_back(pass.info.name);
  }
  for (const KernelPassInfo& pass : listKernelPasses()) names.push_back(pass.name);
  return names;
}

/// From here on a program has kernel modules and can run.
bool isEmitted(const PassInfo& info) { return info.after == "emitted" || info.after == "optimized"; }

Status validateStage(const Stage& stage, bool emitted) {
  if (const auto* graph = std::get_if<Graph>(&stage)) return graph::validate(*graph);
  const auto& program = std::get<Program>(stage);
  if (!emitted) return program::validateStructure(program);
  auto valid = program::validate(program);
  if (!valid) return valid.failure();
  return Success{};
}

std::string statistics(const Stage& stage) {
  if (const auto* graph = std::get_if<Graph>(&stage)) return fmt::format("{} nodes", graph->nodes.size());
  const auto& program = std::get<Program>(stage);
  size_t instructions = 0;
  for (const program::Kernel& kernel : program.kernels) {
    if (const auto* module = std::get_if<kernel::Module>(&kernel.code)) instructions += module->instructions.size();
  }
  std::string kernels = fmt::format("{} kernels", program.kernels.size());
  if (instructions > 0) kernels += fmt::format(" of {} instructions", instructions);
  return fmt::format("{} commands in {} levels, {}, {} buffers", program.commands.size(), program.levelCount(), kernels,
                     program.buffers.size());
}

Status writeText(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush())
    return fail("dump.write", fmt::format("cannot write '{}'", path.string()), {}, "check that the folder exists and is writable");
  return Success{};
}

Status dump(const CompileOptions& options, size_t number, std::string_view name, const Stage& stage) {
  if (options.dump_directory.empty()) return Success{};
  std::filesystem::path directory(options.dump_directory);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const auto* graph = std::get_if<Graph>(&stage);
  const std::string stem = fmt::format("{:02}-{}", number, name);
  // The same lines with the places in the user's source: apart, so that two stages can be compared without them.
  if (graph != nullptr) LS_CHECK(writeText(directory / (stem + ".located"), graph::print(*graph, true)));
  return writeText(directory / (stem + (graph != nullptr ? ".graph" : ".program")), print(stage));
}

/// passes.txt: what each pass took and did. Columns: name, seconds, changed or unchanged, statistics.
Status dumpRecords(const CompileOptions& options, const std::vector<PassRecord>& records) {
  if (options.dump_directory.empty()) return Success{};
  std::string text;
  for (const PassRecord& record : records) {
    text += fmt::format("{}\t{:.6f}\t{}\t{}\n", record.name, record.seconds, record.changed ? "changed" : "unchanged", record.statistics);
  }
  return writeText(std::filesystem::path(options.dump_directory) / "passes.txt", text);
}

Status dumpKernels(const CompileOptions& options, const Program& program) {
  if (options.dump_directory.empty()) return Success{};
  for (const program::Kernel& kernel : program.kernels) {
    std::filesystem::path file = std::filesystem::path(options.dump_directory) / fmt::format("{}.kir", kernel.name);
    LS_CHECK(writeText(file, print(std::get<kernel::Module>(kernel.code))));
  }
  return Success{};
}

Failure wrongName(std::string message, std::string remedy) {
  Failure failure = fail("pipeline.pass", std::move(message), {}, std::move(remedy));
  failure.exit_code = ExitCode::Usage;
  return failure;
}

Status checkNames(const CompileOptions& options) {
  const std::vector<std::string_view> known = namesToDisable();
  for (const std::string& name : options.disabled) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return wrongName(fmt::format("'{}' is no pass that can be disabled", name), fmt::format("use one of {}", fmt::join(known, ", ")));
  }
  return Success{};
}

PlanSummary summarise(const Program& program) {
  PlanSummary plan;
  for (const program::Arena& arena : program.arenas) {
    plan.total_bytes += arena.size;
    if (arena.role == program::ArenaRole::Workspace) plan.workspace_bytes += arena.size;
  }
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.role == program::ArenaRole::Workspace) plan.unpooled_bytes += buffer.size;
  }
  plan.dispatches = static_cast<uint32_t>(program.commands.size());
  plan.levels = program.levelCount();
  plan.distinct_kernels = static_cast<uint32_t>(program.kernels.size());
  return plan;
}

}  // namespace

Result<Compiled> compile(Graph traced, const CompileOptions& options) {
  LS_CHECK(checkNames(options));
  Compiled compiled{.traced = traced, .optimized = {}, .program = {}, .work = {}, .plan = {}, .passes = {}};
  Program planned;
  Stage stage(std::move(traced));
  LS_CHECK(validateStage(stage, false));
  LS_CHECK(dump(options, 0, "trace", stage));
  size_t number = 0;
  for (const Pass& pass : kPasses) {
    if (pass.applies != nullptr && !pass.applies(options)) continue;
    if (leavesOut(pass, options)) continue;
    auto start = std::chrono::steady_clock::now();
    auto next = runPass(pass, stage, options);
    if (!next) return next.failure();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    compiled.passes.push_back(
        {std::string(pass.info.name), seconds.count(), !(*next == stage), statistics(stage) + " -> " + statistics(*next)});
    narrate([&] {
      const PassRecord& record = compiled.passes.back();
      return fmt::format("pass {} {:.1f} ms: {}", record.name, record.seconds * 1e3, record.changed ? record.statistics : "unchanged");
    });
    if (pass.info.name == "schedule") compiled.optimized = std::get<Graph>(stage);
    if (pass.info.name == "emit") planned = std::get<Program>(stage);
    stage = std::move(*next);
    LS_CHECK(dump(options, ++number, pass.info.name, stage));
    if (!options.verify_each) continue;
    if (Status valid = validateStage(stage, isEmitted(pass.info)); !valid) {
      std::string where = options.dump_directory.empty() ? "run again with a dump directory to see it"
                                                         : fmt::format("see {}/{:02}-{}.*", options.dump_directory, number, pass.info.name);
      internalError(fmt::format("pass '{}' made an invalid module; {}\n{}", pass.info.name, where, toString(valid.diagnostics())));
    }
  }
  compiled.program = std::move(std::get<Program>(stage));
  // Without some pass loops may stay that would have been unrolled; then the device counts at run time.
  if (options.verify_each && options.disabled.empty()) checkLoopBudget(compiled.program, textsOfUserKernels(planned));
  LS_CHECK(dumpKernels(options, compiled.program));
  compiled.work = countWork(planned, compiled.program);
  LS_CHECK(dumpRecords(options, compiled.passes));
  compiled.plan = summarise(compiled.program);
  return compiled;
}

std::vector<PassInfo> listPasses() {
  std::vector<PassInfo> out;
  for (const Pass& pass : kPasses) out.push_back(pass.info);
  return out;
}

Result<Program> runRemainingPasses(Program program, const CompileOptions& options) {
  auto isSymbolic = [](const program::Kernel& kernel) { return std::holds_alternative<program::SymbolicKernel>(kernel.code); };
  if (std::none_of(program.kernels.begin(), program.kernels.end(), isSymbolic)) return program;
  std::string_view reached = program.arenas.empty() ? "scheduled" : "planned";
  Stage stage(std::move(program));
  for (const Pass& pass : kPasses) {
    if (pass.info.before != reached || leavesOut(pass, options)) continue;
    LS_TRY(stage, runPass(pass, stage, options));
    reached = pass.info.after;
  }
  return std::get<Program>(std::move(stage));
}

std::string print(const Stage& stage) {
  return std::visit([](const auto& form) { return print(form); }, stage);
}

Result<Stage> parseStage(std::string_view text, const std::string& file_name) {
  // A program holds graphs; a graph holds no program.
  if (text.find("lockstep.program") < text.find("lockstep.graph")) {
    LS_TRY(Program program, program::parse(text, file_name));
    if (const Status valid = program::validateStructure(program); !valid.ok()) {
      return pointInto(valid.failure(), "program", print(program), text, file_name);
    }
    return Stage(std::move(program));
  }
  LS_TRY(Graph graph, graph::parse(text, file_name));
  if (const Status valid = graph::validate(graph); !valid.ok()) {
    return pointInto(valid.failure(), "graph", graph::print(graph), text, file_name);
  }
  return Stage(std::move(graph));
}

namespace {

/// A pass relies on what those before it leave. Somebody who runs it alone, on a text, may have left them out.
Result<Stage> runAlone(const Pass& pass, const Stage& stage, const CompileOptions& options) {
  const auto notItsForm = [&](const std::string& why) {
    return fail("pipeline.stage",
                fmt::format("pass '{}' cannot work on this {}: {}", pass.info.name,
                            std::holds_alternative<Graph>(stage) ? "graph" : "program", why),
                {}, fmt::format("it takes what is '{}'; run the passes before it first ('lockstep opt --list')", pass.info.before));
  };
  try {
    return runPass(pass, stage, options);
  } catch (const InternalError& error) {
    return notItsForm(error.what());
  } catch (const std::out_of_range&) {
    return notItsForm("it uses a value that is not there");
  }
}

}  // namespace

Result<Stage> runPasses(Stage stage, const std::vector<std::string>& names, const CompileOptions& options) {
  for (const std::string& name : names) {
    auto row = std::find_if(kPasses.begin(), kPasses.end(), [&](const Pass& pass) { return pass.info.name == name; });
    if (row == kPasses.end()) {
      std::string known = joinNames(kPasses, [](const Pass& pass) { return pass.info.name; });
      return wrongName(fmt::format("there is no pass '{}'", name), "use one of " + known);
    }
    LS_TRY(stage, runAlone(*row, stage, options));
  }
  return stage;
}

}  // namespace lockstep::passes
