// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>

#include "ir/graph/op_def.h"
#include "ir/support/narrate.h"
#include "ir/support/nearest.h"
#include "ir/support/text.h"
#include "passes/cost.h"
#include "passes/dump.h"
#include "passes/emit/emit.h"
#include "passes/emit/loop_budget.h"
#include "passes/emit/merge_dispatches.h"
#include "passes/fuse/chain_rows.h"
#include "passes/fuse/fuse.h"
#include "passes/fuse/join_columns.h"
#include "passes/fuse/pack_stores.h"
#include "passes/graph/autocast.h"
#include "passes/graph/bind_parameters.h"
#include "passes/graph/channels_last.h"
#include "passes/graph/check_indices.h"
#include "passes/graph/coarse_functions.h"
#include "passes/graph/decompose.h"
#include "passes/graph/grad.h"
#include "passes/graph/open_extents.h"
#include "passes/graph/optimizer.h"
#include "passes/graph/own_rows.h"
#include "passes/graph/pad_products.h"
#include "passes/graph/recognise.h"
#include "passes/graph/reorder_sums.h"
#include "passes/graph/share_rounded.h"
#include "passes/graph/simplify.h"
#include "passes/graph/sort_segments.h"
#include "passes/graph/split_attention.h"
#include "passes/graph/split_reductions.h"
#include "passes/graph/split_scans.h"
#include "passes/graph/store_operands.h"
#include "passes/graph/take_norms.h"
#include "passes/graph/thin_products.h"
#include "passes/kernel/kernel_pipeline.h"
#include "passes/plan/order_levels.h"
#include "passes/plan/plan_buffers.h"
#include "passes/schedule/choose_plan.h"
#include "passes/schedule/describe_steps.h"
#include "passes/schedule/schedule.h"
#include "passes/schedule/split_dispatches.h"
#include "passes/visits.h"

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
  /// The bodies of loops are graphs like any other: the pass runs on them first, apart from the graph around them.
  bool in_loops = false;
};

constexpr bool kInLoops = true;

/// Every device allocates this much at once (Vulkan 1.1, maxMemoryAllocationSize).
constexpr uint64_t kLeastArena = uint64_t{1} << 30;

const std::array kPasses{
    Pass{{"checkIndices", Stage::Traced, Stage::Traced, "outputs that say which label or index is outside of its range",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.check_indices; },
         [](const Graph& g, const CompileOptions&) { return checkIndices(g); }},
    Pass{{"recognise", Stage::Traced, Stage::Traced, "attention that is written out becomes one op", Disabling::LeavesOut},
         nullptr,
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return recognise(g); },
         kInLoops},
    Pass{{"autocast", Stage::Traced, Stage::Traced, "mixed precision: what products read and make is rounded", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.low.has_value(); },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> {
           if (!o.low) return fail("pipeline.stage", "pass 'autocast' needs a precision, which a text does not name");
           return autocast(g, *o.low);
         },
         kInLoops},
    Pass{{"grad", Stage::Traced, Stage::Differentiated, "gradients of the loss by reverse mode"},
         [](const CompileOptions& o) { return o.optimizer.has_value() || o.keep_gradients; },
         [](const Graph& g, const CompileOptions& o) {
           const bool trains = o.optimizer.has_value(), scales = trains && o.optimizer->loss_scaling;
           return grad(g, {.wrt = leavesOf(g, o),
                           .trains = trains,
                           .loss_scale = scales ? std::optional(o.optimizer->loss_scaling->initial) : std::nullopt});
         }},
    Pass{{"optimizer", Stage::Differentiated, Stage::Updated, "clipping and the update; parameters become views of flat states"},
         [](const CompileOptions& o) { return o.optimizer.has_value(); },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> {
           if (!o.optimizer) return fail("pipeline.stage", "pass 'optimizer' needs an optimizer, which a text does not name");
           return optimizer(g, *o.optimizer);
         }},
    Pass{{"bindParameters",
          {Stage::Traced, Stage::Differentiated},
          Stage::Updated,
          "without an optimizer: parameters become views of the flat state"},
         [](const CompileOptions& o) { return !o.optimizer.has_value(); },
         [](const Graph& g, const CompileOptions& o) { return bindParameters(g, o.parameter_state); }},
    Pass{{"sortSegments", Stage::Updated, Stage::Updated, "long indices of sums by segments are sorted once", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions&) { return sortSegments(g); },
         kInLoops},
    Pass{{"takeNorms", Stage::Updated, Stage::Updated, "products with quantised weights normalise their rows", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return takeNorms(g); },
         kInLoops},
    Pass{{"decompose", Stage::Updated, Stage::Primitive, "softmax, norms and losses become ordinary ops"},
         nullptr,
         [](const Graph& g, const CompileOptions& o) {
           return decompose(g, {o.profile, o.templates != nullptr, o.disabled, o.preferred_templates});
         }},
    Pass{{"simplify", Stage::Primitive, Stage::Primitive, "folding, algebraic rules, common subexpressions, dead code",
          Disabling::LeavesOut},
         nullptr,
         [](const Graph& g, const CompileOptions&) { return simplify(g); },
         kInLoops},
    Pass{{"ownRows", Stage::Primitive, Stage::Primitive, "attention reads the last rows of a cache where they were made",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return ownRows(g); },
         kInLoops},
    Pass{{"channelsLast", Stage::Primitive, Stage::Primitive,
          "products with windows leave the channels of a pixel side by side, and images are computed so", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return channelsLast(g); },
         kInLoops},
    Pass{{"thinProducts", Stage::Primitive, Stage::Primitive, "large products with a vector become sums by rows or columns",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return thinProducts(g); },
         kInLoops},
    Pass{{"shareRounded", Stage::Primitive, Stage::Primitive,
          "mixed precision: what some readers round and has no more bits is kept rounded", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.low.has_value(); },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return shareRounded(g); },
         kInLoops},
    Pass{{"coarseFunctions", Stage::Primitive, Stage::Primitive,
          "mixed precision: functions of which 16 bits are read are computed to them", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.low.has_value(); },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return coarseFunctions(g); },
         kInLoops},
    Pass{{"reorderSums", Stage::Primitive, Stage::Primitive,
          "sums by columns or rows that are read in another order are also computed in it", Disabling::LeavesOut},
         // With few bindings the orders would be kernels of their own.
         [](const CompileOptions& o) {
           return o.profile.style == program::ExecutionStyle::Gpu && o.profile.max_storage_buffers >= cost::kBindingsOfReordered;
         },
         [](const Graph& g, const CompileOptions&) -> Result<Graph> { return reorderSums(g); },
         kInLoops},
    Pass{{"splitReductions", Stage::Primitive, Stage::Primitive, "long reductions to few results run in two stages", Disabling::LeavesOut},
         nullptr,
         [](const Graph& g, const CompileOptions& o) { return splitReductions(g, {o.profile}); },
         kInLoops},
    Pass{{"splitScans", Stage::Primitive, Stage::Primitive, "scans along few long lines run in three steps", Disabling::LeavesOut},
         nullptr,
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> { return splitScans(g, {o.profile}); },
         kInLoops},
    Pass{{"splitAttention", Stage::Primitive, Stage::Primitive, "attention of few queries over a long cache runs in two steps",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> { return splitAttention(g, {o.profile}); },
         kInLoops},
    Pass{{"padProducts", Stage::Primitive, Stage::Primitive, "operands in rows of odd lengths are copied for matrix units",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions& o) { return padProducts(g, {o.profile}); },
         kInLoops},
    Pass{{"storeOperands", Stage::Primitive, Stage::Primitive, "what products would compute in each load is stored shortly before them",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> { return storeOperands(g, {o.profile}); },
         kInLoops},
    Pass{{"fuse", Stage::Primitive, Stage::Grouped, "groups: one kernel each", Disabling::RunsPlain},
         nullptr,
         [](const Graph& g, const CompileOptions& o) {
           const bool is_cpu = o.profile.style == program::ExecutionStyle::Cpu;
           return fuse(g, {.max_bindings = o.profile.max_storage_buffers,
                           .product_rows = is_cpu ? cost::kRegisterRows : cost::kSharedRows,
                           .product_columns = is_cpu ? cost::kSharedColumnsCpu : cost::kSharedColumns,
                           .product_lanes = is_cpu ? cost::kLeastLanesCpu : 1,
                           .dispatch_operations = cost::operationsOfDispatch(o.profile),
                           .late_sums = is_cpu ? 0 : cost::elementsOfLevel(o.profile),
                           .heavy_apart = o.profile.matrix_f16 == program::MatrixShape{} ? 0 : cost::kHeavyApart,
                           .merge = !isDisabled(o, "fuse")});
         },
         kInLoops},
    Pass{{"joinColumns", Stage::Grouped, Stage::Grouped, "sums by columns beside reductions of the same rows run in their kernel",
          Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu; },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> {
           return joinColumns(g, {o.profile, o.templates != nullptr, o.measured});
         },
         kInLoops},
    Pass{{"chainRows", Stage::Grouped, Stage::Grouped, "small products and reductions of the same rows run in one kernel",
          Disabling::LeavesOut},
         [](const CompileOptions& o) {
           return o.profile.style == program::ExecutionStyle::Gpu && o.profile.max_storage_buffers >= cost::kBindingsOfChains;
         },
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> { return chainRows(g, {o.profile, o.templates != nullptr}); },
         kInLoops},
    Pass{{"packStores", Stage::Grouped, Stage::Grouped,
          "groups whose invocations have no whole words make wide results, and a map of its own packs each"},
         nullptr,
         [](const Graph& g, const CompileOptions& o) -> Result<Graph> {
           return packStores(g, {o.profile, o.templates != nullptr, o.measured});
         },
         kInLoops},
    Pass{{"schedule", Stage::Grouped, Stage::Scheduled, "plans of kernels, virtual buffers, dependency levels"},
         nullptr,
         [](const Graph& g, const CompileOptions& o) { return schedule(g, {o.profile, o.templates != nullptr, o.measured}); }},
    Pass{
        {"describeSteps", Stage::Scheduled, Stage::Scheduled, "what the host does in a step: inputs that it makes, states that persist"},
        nullptr,
        [](const Program& p, const CompileOptions& o) -> Result<Program> { return describeSteps(p, {o.optimizer, o.rate, o.checkpoint}); }},
    Pass{{"splitDispatches", Stage::Scheduled, Stage::Scheduled, "dispatches above the binding limit run in slices"},
         nullptr,
         [](const Program& p, const CompileOptions& o) { return splitDispatches(p, {o.profile}); }},
    Pass{{"planBuffers", Stage::Scheduled, Stage::Planned, "lifetimes to offsets in arenas", Disabling::RunsPlain},
         nullptr,
         [](const Program& p, const CompileOptions& o) {
           return planBuffers(p, {.share = !isDisabled(o, "planBuffers"),
                                  .memory_limit = o.memory_limit,
                                  .arena_limit = std::max(kLeastArena, o.profile.max_binding_bytes),
                                  .separate_access = o.profile.whole_buffer_access});
         }},
    Pass{{"orderLevels", Stage::Planned, Stage::Planned, "commands of a level begin with those that take longest", Disabling::LeavesOut},
         [](const CompileOptions& o) { return o.profile.style == program::ExecutionStyle::Gpu && o.profile.parallel_units > 1; },
         [](const Program& p, const CompileOptions& o) -> Result<Program> { return orderLevels(p, o.profile); }},
    Pass{{"emit", Stage::Planned, Stage::Emitted, "kernel IR by elemental emission and templates"},
         nullptr,
         [](const Program& p, const CompileOptions& o) { return emit(p, {o.profile, o.templates}); }},
    Pass{{"mergeDispatches", Stage::Emitted, Stage::Emitted, "small dispatches of one level become one", Disabling::LeavesOut},
         nullptr,
         [](const Program& p, const CompileOptions& o) -> Result<Program> { return mergeDispatches(p, o.profile); }},
    Pass{{"kernels", Stage::Emitted, Stage::Optimized, "the kernel passes below, each kernel on its own", Disabling::LeavesOut},
         nullptr,
         [](const Program& p, const CompileOptions& o) { return optimizeKernels(p, o.disabled); }},
};

bool leavesOut(const Pass& pass, const CompileOptions& options) {
  return pass.info.disabling == Disabling::LeavesOut && isDisabled(options, pass.info.name);
}

/// Runs one row on a form of the right kind.
struct Runner {
  const Form& form;
  const CompileOptions& options;

  template <class From, class To>
  Result<Form> operator()(Run<From, To> run) const {
    Result<To> out = run(std::get<From>(form), options);
    if (!out) return out.failure();
    return Form(std::move(*out));
  }
};

bool isLoop(const graph::Node& node) { return std::holds_alternative<graph::LoopLowering>(*node.op->lower); }
bool holdsLoops(const Graph& graph) {
  return std::ranges::any_of(graph.body().nodes, [&](graph::NodeId id) { return isLoop(graph[id]); });
}

/// The graph with the pass run on the bodies of its loops.
Result<Graph> inLoops(Run<Graph, Graph> pass, const Graph& graph, const CompileOptions& options) {
  Graph changed = graph;
  for (const graph::NodeId id : graph.body().nodes) {
    if (!isLoop(graph[id])) continue;
    graph::Node& node = changed.nodes[id.index()];
    LS_TRY(Graph body, inLoops(pass, *node.attributes.get<graph::NestedGraph>("body"), options));
    LS_TRY(body, pass(body, options));
    node.attributes.set("body", graph::NestedGraph(std::move(body)));
  }
  return changed;
}

Result<Form> runPass(const Pass& pass, const Form& form, const CompileOptions& options) {
  if (!pass.in_loops || !holdsLoops(std::get<Graph>(form))) return std::visit(Runner{form, options}, pass.run);
  LS_TRY(Graph graph, inLoops(std::get<Run<Graph, Graph>>(pass.run), std::get<Graph>(form), options));
  return std::visit(Runner{Form(std::move(graph)), options}, pass.run);
}

/// Whether a compilation runs the pass.
bool runs(const Pass& pass, const CompileOptions& options) {
  return (pass.applies == nullptr || pass.applies(options)) && !leavesOut(pass, options);
}

/// Both the rules of the form and those of the stage.
Status validateAt(Stage stage, const Form& form) {
  if (const std::string found = illegalAt(stage, form); !found.empty()) {
    return fail("pipeline.stage", fmt::format("what is '{}' {}", toString(stage), found));
  }
  if (const auto* graph = std::get_if<Graph>(&form)) return graph::validate(*graph);
  const auto& program = std::get<Program>(form);
  if (stage < Stage::Emitted) return program::validateStructure(program);
  auto valid = program::validate(program);
  if (!valid) return valid.failure();
  return Success{};
}

std::string statistics(const Form& form) {
  if (const auto* graph = std::get_if<Graph>(&form)) return fmt::format("{} nodes", graph->nodes.size());
  const auto& program = std::get<Program>(form);
  size_t instructions = 0;
  for (const program::Kernel& kernel : program.kernels) {
    if (const auto* module = std::get_if<kernel::Module>(&kernel.code)) instructions += module->instructions.size();
  }
  std::string kernels = fmt::format("{} kernels", program.kernels.size());
  if (instructions > 0) kernels += fmt::format(" of {} instructions", instructions);
  return fmt::format("{} commands in {} levels, {}, {} buffers", program.commands.size(), program.levelCount(), kernels,
                     program.buffers.size());
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

/// Of the kernels that schedule has planned.
uint32_t countMeasured(const Program& scheduled, const CompileOptions& options) {
  if (options.measured.plans.empty()) return 0;
  return static_cast<uint32_t>(std::ranges::count_if(scheduled.kernels, [&](const program::Kernel& kernel) {
    const auto* symbolic = std::get_if<program::SymbolicKernel>(&kernel.code);
    if (symbolic == nullptr) return false;
    const auto choice =
        measuredChoice({symbolic->body, kindOf(symbolic->plan), options.profile, options.templates != nullptr, &options.measured});
    return choice && choice->plan == symbolic->plan;
  }));
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
  uint32_t measured_plans = 0, plans = 0;
  Form form(std::move(traced));
  Stage stage = Stage::Traced;
  LS_CHECK(validateAt(stage, form));
  LS_CHECK(dumpForm(options.dump_directory, 0, "trace", form));
  size_t number = 0;
  for (const Pass& pass : kPasses) {
    if (!runs(pass, options)) continue;
    if (!pass.info.before.has(stage)) internalError(fmt::format("pass '{}' does not follow what is '{}'", pass.info.name, toString(stage)));
    auto start = std::chrono::steady_clock::now();
    const uint64_t visits = visitsSoFar();
    auto next = runPass(pass, form, options);
    if (!next) return next.failure();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    compiled.passes.push_back({std::string(pass.info.name), seconds.count(), !(*next == form),
                               statistics(form) + " -> " + statistics(*next), visitsSoFar() - visits});
    narrate([&] {
      const PassRecord& record = compiled.passes.back();
      return fmt::format("pass {} {:.1f} ms: {}", record.name, record.seconds * 1e3, record.changed ? record.statistics : "unchanged");
    });
    if (stage == Stage::Grouped) compiled.optimized = std::get<Graph>(form);
    if (stage < Stage::Scheduled && pass.info.after == Stage::Scheduled) {
      const auto& scheduled = std::get<Program>(*next);
      plans = static_cast<uint32_t>(std::ranges::count_if(
          scheduled.kernels, [](const program::Kernel& kernel) { return std::holds_alternative<program::SymbolicKernel>(kernel.code); }));
      measured_plans = countMeasured(scheduled, options);
    }
    if (stage == Stage::Planned) planned = std::get<Program>(form);
    form = std::move(*next);
    stage = pass.info.after;
    LS_CHECK(dumpForm(options.dump_directory, ++number, pass.info.name, form));
    if (!options.verify_each) continue;
    if (Status valid = validateAt(stage, form); !valid) {
      std::string where = options.dump_directory.empty() ? "run again with a dump directory to see it"
                                                         : fmt::format("see {}/{:02}-{}.*", options.dump_directory, number, pass.info.name);
      internalError(fmt::format("pass '{}' made an invalid module; {}\n{}", pass.info.name, where, toString(valid.diagnostics())));
    }
  }
  compiled.program = std::move(std::get<Program>(form));
  // Without some pass loops may stay that would have been unrolled; then the device counts at run time.
  if (options.verify_each && options.disabled.empty()) checkLoopBudget(compiled.program, textsOfUserKernels(planned));
  LS_CHECK(dumpKernels(options.dump_directory, compiled.program));
  compiled.work = countWork(planned, compiled.program);
  LS_CHECK(dumpRecords(options.dump_directory, compiled.passes));
  compiled.plan = summarise(compiled.program);
  compiled.plan.plans = plans;
  compiled.plan.measured_plans = measured_plans;
  return compiled;
}

Result<Form> compileTo(Stage goal, Graph traced, const CompileOptions& options) {
  Form form(std::move(traced));
  Stage stage = Stage::Traced;
  for (const Pass& pass : kPasses) {
    if (stage == goal && pass.info.after != goal) break;
    if (!runs(pass, options)) continue;
    LS_TRY(form, runPass(pass, form, options));
    stage = pass.info.after;
  }
  return form;
}

std::string toString(Stages stages) {
  std::string text(toString(stages.first));
  return stages.first == stages.last ? text : fmt::format("{} or {}", text, toString(stages.last));
}

std::vector<std::string_view> namesToDisable() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) {
    if (pass.info.disabling != Disabling::Refused) names.push_back(pass.info.name);
  }
  for (const KernelPassInfo& pass : listKernelPasses()) names.push_back(pass.name);
  static const std::vector<std::string> choices = decomposeChoices();
  names.insert(names.end(), choices.begin(), choices.end());
  names.push_back(kOpenExtents);  // of what the front end does before the passes
  return names;
}

std::vector<PassInfo> listPasses() {
  std::vector<PassInfo> out;
  for (const Pass& pass : kPasses) out.push_back(pass.info);
  return out;
}

std::vector<PassInfo> listPasses(const CompileOptions& options) {
  std::vector<PassInfo> out;
  for (const Pass& pass : kPasses) {
    if (pass.applies == nullptr || pass.applies(options)) out.push_back(pass.info);
  }
  return out;
}

Result<Program> runRemainingPasses(Program program, const CompileOptions& options) {
  Stage stage = stageOf(program);
  if (stage >= Stage::Emitted) return program;
  Form form(std::move(program));
  for (const Pass& pass : kPasses) {
    if (!pass.info.before.has(stage) || !runs(pass, options)) continue;
    LS_TRY(form, runPass(pass, form, options));
    stage = pass.info.after;
  }
  return std::get<Program>(std::move(form));
}

namespace {

/// The passes that lead to the first stage that a pass takes, in words.
std::string wayTo(const Pass& pass) {
  std::vector<std::string_view> names;
  for (const Pass& earlier : kPasses) {
    if (&earlier == &pass) break;
    if (earlier.info.after == pass.info.before.last && earlier.info.after != earlier.info.before.last) names.push_back(earlier.info.name);
  }
  return names.empty() ? "give it a traced graph" : fmt::format("run '{}' before it ('lockstep opt --list')", fmt::join(names, "' or '"));
}

/// A pass relies on what those before it leave. Somebody who runs it alone, on a text, may have left them out.
Result<Form> runAlone(const Pass& pass, const Form& form, const CompileOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return fail("pipeline.stage", fmt::format("pass '{}' takes what is '{}', and {}", pass.info.name, toString(pass.info.before), why), {},
                wayTo(pass));
  };
  if (const std::string found = illegalAt(pass.info.before.last, form); !found.empty()) return refuse("this " + found);
  try {
    return runPass(pass, form, options);
  } catch (const InternalError& error) {
    return refuse(error.what());
  } catch (const std::out_of_range&) {
    return refuse("this uses a value that is not there");
  }
}

}  // namespace

Result<Form> runPasses(Form form, const std::vector<std::string>& names, const CompileOptions& options) {
  for (const std::string& name : names) {
    auto row = std::find_if(kPasses.begin(), kPasses.end(), [&](const Pass& pass) { return pass.info.name == name; });
    if (row == kPasses.end()) {
      std::string known = joinNames(kPasses, [](const Pass& pass) { return pass.info.name; });
      return wrongName(fmt::format("there is no pass '{}'", name), "use one of " + known);
    }
    LS_TRY(form, runAlone(*row, form, options));
  }
  return form;
}

}  // namespace lockstep::passes
