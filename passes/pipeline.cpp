// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <variant>

#include "passes/decompose.h"
#include "passes/emit.h"
#include "passes/fuse.h"
#include "passes/grad.h"
#include "passes/plan_buffers.h"
#include "passes/schedule.h"
#include "passes/simplify.h"
#include "passes/split_reductions.h"

namespace lockstep::passes {

using graph::Graph;
using program::Program;

namespace {

using Stage = std::variant<Graph, Program>;

bool isDisabled(const CompileOptions& options, std::string_view name) {
  return std::find(options.disabled.begin(), options.disabled.end(), name) != options.disabled.end();
}

// Each row's function is the pass itself; the lambdas only pick its configuration out of the options.
struct Pass {
  PassInfo info;
  /// Null: the pass runs. Otherwise whether it applies.
  bool (*applies)(const CompileOptions&);
  Result<Stage> (*run)(const Stage&, const CompileOptions&);
};

Result<Stage> onGraph(Result<Graph> result) {
  if (!result) return result.failure();
  return Stage(std::move(*result));
}
Result<Stage> onProgram(Result<Program> result) {
  if (!result) return result.failure();
  return Stage(std::move(*result));
}

const std::array kPasses{
    Pass{{"grad", "traced", "differentiated", "gradients of the loss by reverse mode"},
         [](const CompileOptions& o) { return o.optimizer.has_value() || o.keep_gradients; },
         [](const Stage& s, const CompileOptions& o) { return onGraph(grad(std::get<Graph>(s), {o.wrt})); }},
    Pass{{"adam", "differentiated", "updated", "the optimizer; parameters become views of flat states"},
         [](const CompileOptions& o) { return o.optimizer.has_value(); },
         [](const Stage& s, const CompileOptions& o) { return onGraph(adam(std::get<Graph>(s), *o.optimizer)); }},
    Pass{{"bindParameters", "traced", "updated", "without an optimizer: parameters become views of the flat state"},
         [](const CompileOptions& o) { return !o.optimizer.has_value(); },
         [](const Stage& s, const CompileOptions&) { return onGraph(bindParameters(std::get<Graph>(s))); }},
    Pass{{"decompose", "updated", "primitive", "softmax, norms and losses become ordinary ops"},
         nullptr,
         [](const Stage& s, const CompileOptions&) { return onGraph(decompose(std::get<Graph>(s))); }},
    Pass{
        {"simplify", "primitive", "primitive", "constant folding, algebraic rules, common subexpressions, dead code", Disabling::LeavesOut},
        nullptr,
        [](const Stage& s, const CompileOptions&) { return onGraph(simplify(std::get<Graph>(s))); }},
    Pass{{"splitReductions", "primitive", "primitive", "long reductions to few results run in two stages", Disabling::LeavesOut},
         nullptr,
         [](const Stage& s, const CompileOptions& o) { return onGraph(splitReductions(std::get<Graph>(s), {o.profile.parallel_units})); }},
    Pass{{"fuse", "primitive", "grouped", "groups: one kernel each", Disabling::RunsPlain},
         nullptr,
         [](const Stage& s, const CompileOptions& o) {
           return onGraph(fuse(std::get<Graph>(s), {.max_bindings = o.profile.max_storage_buffers, .merge = !isDisabled(o, "fuse")}));
         }},
    Pass{{"schedule", "grouped", "scheduled", "strategies, virtual buffers, dependency levels"},
         nullptr,
         [](const Stage& s, const CompileOptions& o) {
           return onProgram(schedule(std::get<Graph>(s), {o.profile, o.templates != nullptr}));
         }},
    Pass{{"planBuffers", "scheduled", "planned", "lifetimes to offsets in arenas", Disabling::RunsPlain},
         nullptr,
         [](const Stage& s, const CompileOptions& o) {
           return onProgram(planBuffers(std::get<Program>(s), {!isDisabled(o, "planBuffers"), o.memory_limit}));
         }},
    Pass{{"emit", "planned", "emitted", "kernel IR by elemental emission and templates"},
         nullptr,
         [](const Stage& s, const CompileOptions& o) { return onProgram(emit(std::get<Program>(s), {o.profile, o.templates})); }},
};

Status validateStage(const Stage& stage, std::string_view name) {
  if (const auto* graph = std::get_if<Graph>(&stage)) return graph::validate(*graph);
  const auto& program = std::get<Program>(stage);
  if (name != "emit") return program::validateStructure(program);
  auto valid = program::validate(program);
  if (!valid) return valid.failure();
  return Success{};
}

std::string statistics(const Stage& stage) {
  if (const auto* graph = std::get_if<Graph>(&stage)) return fmt::format("{} nodes", graph->nodes.size());
  const auto& program = std::get<Program>(stage);
  return fmt::format("{} commands in {} levels, {} kernels, {} buffers", program.commands.size(), program.levelCount(),
                     program.kernels.size(), program.buffers.size());
}

std::string textOf(const Stage& stage) {
  if (const auto* graph = std::get_if<Graph>(&stage)) return print(*graph);
  return print(std::get<Program>(stage));
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
  std::string_view extension = std::holds_alternative<Graph>(stage) ? "graph" : "program";
  LS_CHECK(writeText(directory / fmt::format("{:02}-{}.{}", number, name, extension), textOf(stage)));
  if (name != "emit") return Success{};
  for (const program::Kernel& kernel : std::get<Program>(stage).kernels) {
    LS_CHECK(writeText(directory / fmt::format("{}.kir", kernel.name), print(std::get<kernel::Module>(kernel.code))));
  }
  return Success{};
}

Status checkNames(const CompileOptions& options) {
  for (const std::string& name : options.disabled) {
    auto row = std::find_if(kPasses.begin(), kPasses.end(), [&](const Pass& pass) { return pass.info.name == name; });
    if (row == kPasses.end() || row->info.disabling == Disabling::Refused) {
      std::string known;
      for (const Pass& pass : kPasses) {
        if (pass.info.disabling != Disabling::Refused) known += fmt::format("{}{}", known.empty() ? "" : ", ", pass.info.name);
      }
      return fail("pipeline.pass", fmt::format("'{}' is no pass that can be disabled", name), {}, "use one of " + known);
    }
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
  Compiled compiled{.traced = traced, .optimized = {}, .program = {}, .plan = {}, .passes = {}};
  Stage stage(std::move(traced));
  LS_CHECK(validateStage(stage, "trace"));
  LS_CHECK(dump(options, 0, "trace", stage));
  size_t number = 0;
  for (const Pass& pass : kPasses) {
    if (pass.applies != nullptr && !pass.applies(options)) continue;
    if (pass.info.disabling == Disabling::LeavesOut && isDisabled(options, pass.info.name)) continue;
    auto start = std::chrono::steady_clock::now();
    auto next = pass.run(stage, options);
    if (!next) return next.failure();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    compiled.passes.push_back(
        {std::string(pass.info.name), seconds.count(), !(*next == stage), statistics(stage) + " -> " + statistics(*next)});
    if (pass.info.name == "schedule") compiled.optimized = std::get<Graph>(stage);
    stage = std::move(*next);
    LS_CHECK(dump(options, ++number, pass.info.name, stage));
    if (!options.verify_each) continue;
    if (Status valid = validateStage(stage, pass.info.name); !valid) {
      std::string where = options.dump_directory.empty() ? "run again with a dump directory to see it"
                                                         : fmt::format("see {}/{:02}-{}.*", options.dump_directory, number, pass.info.name);
      internalError(fmt::format("pass '{}' made an invalid module; {}\n{}", pass.info.name, where, toString(valid.diagnostics())));
    }
  }
  compiled.program = std::move(std::get<Program>(stage));
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
    if (pass.info.before != reached) continue;
    LS_TRY(stage, pass.run(stage, options));
    reached = pass.info.after;
  }
  return std::get<Program>(std::move(stage));
}

Result<Graph> runGraphPasses(Graph graph, const std::vector<std::string>& names, const CompileOptions& options) {
  Stage stage(std::move(graph));
  for (const std::string& name : names) {
    auto row = std::find_if(kPasses.begin(), kPasses.end(), [&](const Pass& pass) { return pass.info.name == name; });
    if (row == kPasses.end()) {
      std::string known;
      for (const Pass& pass : kPasses) known += fmt::format("{}{}", known.empty() ? "" : ", ", pass.info.name);
      return fail("pipeline.pass", fmt::format("there is no pass '{}'", name), {}, "use one of " + known);
    }
    auto next = row->run(stage, options);
    if (!next) return next.failure();
    if (!std::holds_alternative<Graph>(*next))
      return fail("pipeline.stage", fmt::format("pass '{}' does not give a graph", name), {}, "stop at 'fuse'");
    stage = std::move(*next);
  }
  return std::get<Graph>(std::move(stage));
}

}  // namespace lockstep::passes
