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
#include "passes/kernel/kernel_pipeline.h"
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

Program optimizeKernels(Program program, const std::vector<std::string>& disabled) {
  for (program::Kernel& kernel : program.kernels) {
    kernel.code = optimizeKernel(std::move(std::get<kernel::Module>(kernel.code)), disabled);
  }
  return program;
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
    Pass{{"grad", "traced", "differentiated", "gradients of the loss by reverse mode", false},
         [](const CompileOptions& o) { return o.optimizer.has_value() || o.keep_gradients; },
         [](const Stage& s, const CompileOptions& o) { return onGraph(grad(std::get<Graph>(s), {o.wrt})); }},
    Pass{{"adam", "differentiated", "updated", "the optimizer; parameters become views of flat states", false},
         [](const CompileOptions& o) { return o.optimizer.has_value(); },
         [](const Stage& s, const CompileOptions& o) { return onGraph(adam(std::get<Graph>(s), *o.optimizer)); }},
    Pass{{"bindParameters", "traced", "updated", "without an optimizer: parameters become views of the flat state", false},
         [](const CompileOptions& o) { return !o.optimizer.has_value(); },
         [](const Stage& s, const CompileOptions&) { return onGraph(bindParameters(std::get<Graph>(s))); }},
    Pass{{"decompose", "updated", "primitive", "softmax, norms and losses become ordinary ops", false},
         nullptr,
         [](const Stage& s, const CompileOptions&) { return onGraph(decompose(std::get<Graph>(s))); }},
    Pass{{"simplify", "primitive", "primitive", "constant folding, algebraic rules, common subexpressions, dead code", true},
         nullptr,
         [](const Stage& s, const CompileOptions&) { return onGraph(simplify(std::get<Graph>(s))); }},
    Pass{{"splitReductions", "primitive", "primitive", "long reductions to few results run in two stages", true},
         nullptr,
         [](const Stage& s, const CompileOptions& o) { return onGraph(splitReductions(std::get<Graph>(s), {o.profile.parallel_units})); }},
    Pass{{"fuse", "primitive", "grouped", "groups: one kernel each", false},
         nullptr,
         [](const Stage& s, const CompileOptions& o) {
           return onGraph(fuse(std::get<Graph>(s), {.max_bindings = o.profile.max_storage_buffers, .merge = !isDisabled(o, "fuse")}));
         }},
    Pass{{"schedule", "grouped", "scheduled", "strategies, virtual buffers, dependency levels", false},
         nullptr,
         [](const Stage& s, const CompileOptions& o) {
           return onProgram(schedule(std::get<Graph>(s), {o.profile, o.templates != nullptr}));
         }},
    Pass{{"planBuffers", "scheduled", "planned", "lifetimes to offsets in arenas", false},
         nullptr,
         [](const Stage& s, const CompileOptions& o) {
           return onProgram(planBuffers(std::get<Program>(s), {!isDisabled(o, "planBuffers"), o.memory_limit}));
         }},
    Pass{{"emit", "planned", "emitted", "kernel IR by elemental emission and templates", false},
         nullptr,
         [](const Stage& s, const CompileOptions& o) { return onProgram(emit(std::get<Program>(s), {o.profile, o.templates})); }},
    Pass{{"kernels", "emitted", "optimized", "the kernel passes below, each kernel on its own", true},
         nullptr,
         [](const Stage& s, const CompileOptions& o) { return onProgram(optimizeKernels(std::get<Program>(s), o.disabled)); }},
};

// `fuse` and `planBuffers` cannot be left out, but run in their plainest form when they are disabled.
std::vector<std::string_view> namesToDisable() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) {
    if (pass.info.optional || pass.info.name == "fuse" || pass.info.name == "planBuffers") names.push_back(pass.info.name);
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

Status dump(const CompileOptions& options, size_t number, std::string_view name, const Stage& stage, bool emitted) {
  if (options.dump_directory.empty()) return Success{};
  std::filesystem::path directory(options.dump_directory);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::string_view extension = std::holds_alternative<Graph>(stage) ? "graph" : "program";
  LS_CHECK(writeText(directory / fmt::format("{:02}-{}.{}", number, name, extension), textOf(stage)));
  if (!emitted) return Success{};
  // The files of the last pass stay.
  for (const program::Kernel& kernel : std::get<Program>(stage).kernels) {
    LS_CHECK(writeText(directory / fmt::format("{}.kir", kernel.name), print(std::get<kernel::Module>(kernel.code))));
  }
  return Success{};
}

Status checkNames(const CompileOptions& options) {
  const std::vector<std::string_view> known = namesToDisable();
  for (const std::string& name : options.disabled) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return fail("pipeline.pass", fmt::format("'{}' is no pass that can be left out", name), {},
                fmt::format("use one of {}", fmt::join(known, ", ")));
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
  LS_CHECK(validateStage(stage, false));
  LS_CHECK(dump(options, 0, "trace", stage, false));
  size_t number = 0;
  for (const Pass& pass : kPasses) {
    if (pass.applies != nullptr && !pass.applies(options)) continue;
    if (pass.info.optional && isDisabled(options, pass.info.name)) continue;
    auto start = std::chrono::steady_clock::now();
    auto next = pass.run(stage, options);
    if (!next) return next.failure();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    compiled.passes.push_back(
        {std::string(pass.info.name), seconds.count(), !(*next == stage), statistics(stage) + " -> " + statistics(*next)});
    if (pass.info.name == "schedule") compiled.optimized = std::get<Graph>(stage);
    stage = std::move(*next);
    LS_CHECK(dump(options, ++number, pass.info.name, stage, isEmitted(pass.info)));
    if (!options.verify_each) continue;
    if (Status valid = validateStage(stage, isEmitted(pass.info)); !valid) {
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
