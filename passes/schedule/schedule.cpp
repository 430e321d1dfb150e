// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "ir/graph/builder.h"
#include "ir/graph/group_kind.h"
#include "ir/graph/loop.h"
#include "ir/kernel/claims.h"
#include "passes/fuse/views.h"
#include "passes/graph/whole_word_updates.h"
#include "passes/schedule/choose_plan.h"
#include "passes/schedule/conflicts.h"
#include "passes/schedule/group_body.h"
#include "passes/schedule/jobs.h"
#include "passes/schedule/kernel_limits.h"
#include "passes/schedule/kernel_table.h"
#include "passes/schedule/loop_commands.h"
#include "passes/schedule/places.h"
#include "passes/schedule/row_update.h"

namespace lockstep::passes {

using namespace graph;
using program::ArenaRole;
using program::BufferId;
using program::Command;
using program::Copy;
using program::Dispatch;
using program::Program;
using program::Range;
using program::SymbolicKernel;

namespace {

/// A copy and the bytes that it writes.
struct CopyJob {
  uint64_t begin, end;
  size_t job;
};

struct State {
  /// `copied`: states that are updated by copies in any case.
  State(const Graph& of, const ScheduleConfig& given, const std::set<ValueId>& copied)
      : graph(of), config(given), places(of, given, copied, program) {
    program.profile = config.profile;
    program.parameters = graph.parameters;
  }

  const Graph& graph;
  const ScheduleConfig& config;
  Program program;
  Places places;
  std::vector<Job> jobs;
  std::map<ValueId, size_t> maker;                         // job that makes a group's result
  std::map<ValueId, std::vector<size_t>> readers;          // jobs that read a state leaf
  std::map<ValueId, std::vector<size_t>> version_readers;  // by version of a state that update_rows made: the jobs that need it
  std::map<ValueId, size_t> version_writers;               // by such a version: the job that overwrites rows of it
  std::map<ValueId, std::vector<CopyJob>> copy_jobs;       // by what they make, in the order of their bytes
  KernelTable kernels;

  void dependOn(size_t job, ValueId value) {
    ValueId base = places.root(value);
    const Node& node = graph.definition(base);
    std::set<size_t>& after = jobs[job].after;
    if (auto made = maker.find(base); made != maker.end()) after.insert(made->second);
    if (auto copied = copy_jobs.find(base); copied != copy_jobs.end()) {
      const Range read = places.rangeOf(value, kernel::Access::Read);
      auto copy = std::ranges::lower_bound(copied->second, read.offset, std::less_equal(), [](const CopyJob& c) { return c.end; });
      for (; copy != copied->second.end() && copy->begin < read.offset + read.size; ++copy) after.insert(copy->job);
    }
    if (const auto parts = packedParts(graph, value)) {
      for (ValueId part : *parts) dependOn(job, part);
    } else if (std::holds_alternative<AliasPack>(*node.op->alias)) {
      for (ValueId part : node.operands) dependOn(job, part);
    }
    if (const auto* update = std::get_if<AliasUpdate>(&*node.op->alias)) {
      if (update->at_index) {
        version_readers[base].push_back(job);
      } else {
        dependOn(job, node.operands[1]);
      }
    }
    // A barrier is no more than its operands, the ones that it waits for included.
    if (std::holds_alternative<AliasView>(*node.op->alias)) {
      for (ValueId operand : node.operands) dependOn(job, operand);
    }
    // A group without operands is no leaf: it makes its value, so nobody can need an older one.
    if (node.operands.empty() && std::holds_alternative<StorageLowering>(*node.op->lower)) readers[base].push_back(job);
  }

  /// Rows of a state that a value names are written by a kernel of their own.
  Status addUpdate(const Node& node) {
    const TensorType &state = graph.typeOf(node.operands[0]), &rows = graph.typeOf(node.operands[1]);
    const int64_t count = graph.shapeOf(node.operands[2]).elementCount();
    const RowUpdate update = updateRows(state, rows, count, node.attributes.get<int64_t>("axis"), config.profile);
    LS_CHECK(checkKernelLimits(update.module, update.groups, config.profile, locationOf(node)));
    const ValueId before = places.root(node.operands[0]);
    const auto* older = std::get_if<AliasUpdate>(&*graph.definition(before).op->alias);
    if (program[places.of(places.storageOf(before)).buffer].role != ArenaRole::State || (older != nullptr && !older->at_index))
      return fail("schedule.update", "update_rows writes into what is no state, or what update_slice made", locationOf(node),
                  "use write_rows");
    const size_t job = jobs.size();
    jobs.push_back({.command = {}, .after = {}});
    dependOn(job, node.operands[1]);
    dependOn(job, node.operands[2]);
    if (older != nullptr) {
      if (const auto made = maker.find(before); made != maker.end()) jobs[job].after.insert(made->second);
      version_writers[before] = job;
    }
    const Dispatch dispatch{
        kernels.add("update_rows", update.module),
        update.groups,
        {places.rangeOf(node.operands[0], kernel::Access::ReadWrite), places.rangeOf(node.operands[1], kernel::Access::Read),
         places.rangeOf(node.operands[2], kernel::Access::Read)}};
    jobs[job].command = {dispatch, 0, "update_rows"};
    maker[node.results[0]] = job;
    return Success{};
  }

  /// Who reads a version of a state does so before its rows are overwritten.
  void orderVersions() {
    for (const auto& [version, writer] : version_writers) {
      const auto readers_of = version_readers.find(version);
      if (readers_of == version_readers.end()) continue;
      for (const size_t reader : readers_of->second) {
        if (reader != writer) jobs[writer].after.insert(reader);
      }
    }
  }

  [[nodiscard]] Location locationOf(const Node& node) const { return node.location == 0 ? Location{} : graph.locations[node.location - 1]; }

  /// A group becomes a kernel of its kind, which knows its operands and what it makes of them. fuse sees to that; a text may say otherwise.
  Status checkClosed(const Node& group) const {
    std::set<ValueId> known(group.operands.begin(), group.operands.end());
    const Region& region = graph[group.regions[0]];
    const auto isKnown = [&](ValueId value) { return known.contains(value); };
    bool closed = true;
    for (NodeId id : region.nodes) {
      closed = closed && graph[id].regions.empty() && std::ranges::all_of(graph[id].operands, isKnown);
      known.insert(graph[id].results.begin(), graph[id].results.end());
    }
    const bool is_closed = closed && std::ranges::all_of(region.yields, isKnown);
    const std::string problem = !is_closed ? "a group uses a value that is not among its operands, or has a group inside"
                                           : misfit(kindOf(group), graph, region.nodes, /*inputs=*/false);
    if (problem.empty()) return Success{};
    return fail("schedule.group", problem, group.location == 0 ? Location{} : graph.locations[group.location - 1],
                "make every value from outside an operand of the group, or leave groups to the pass 'fuse'");
  }

  /// Nobody writes a part of a word. decompose sees to that; a text may say otherwise.
  [[nodiscard]] Status checkWords(const Node& update) const {
    if (writesWholeWords(graph, update)) return Success{};
    return fail("schedule.words",
                fmt::format("an update writes {} elements of a packed state from {} on, which share words with others",
                            graph.shapeOf(update.operands[1]).elementCount(), update.attributes.get<int64_t>("offset")),
                update.location == 0 ? Location{} : graph.locations[update.location - 1],
                "run the pass 'decompose' first, which makes it an update of whole words");
  }

  /// fuse keeps groups within the bindings of a kernel, but a single op may have more tensors. In other kinds of kernels results take the
  /// bytes of operands, with one binding for both.
  [[nodiscard]] Status checkBindings(const Node& group) const {
    const size_t bindings = group.operands.size() + group.results.size();
    const bool counts = kindOf(group) == GroupKind::Scan || kindOf(group) == GroupKind::Template;
    if (!counts || bindings <= config.profile.max_storage_buffers) return Success{};
    return fail("schedule.bindings",
                fmt::format("{} reads and makes {} tensors, and a kernel on '{}' binds at most {}", labelOf(group), bindings,
                            config.profile.name, config.profile.max_storage_buffers),
                group.location == 0 ? Location{} : graph.locations[group.location - 1],
                "give the operation fewer tensors, or choose a device with more bindings (lockstep devices)");
  }

  Status addGroup(const Node& group) {
    LS_CHECK(checkClosed(group));
    LS_CHECK(checkBindings(group));
    SymbolicKernel symbolic{groupBody(graph, group), {}};
    LS_TRY(PlanChoice choice, choosePlan({symbolic.body, kindOf(group), config.profile, config.templates, &config.measured}));
    symbolic.plan = std::move(choice.plan);
    addDispatch(group, kernels.add(std::move(symbolic)), choice.groups, labelOf(group));
    return Success{};
  }

  /// A kernel that came with its node.
  Status addKernel(const Node& node) {
    LS_TRY(kernel::Module module, kernel::parse(node.attributes.get<std::string>("module")));
    module = kernel::dropClaims(std::move(module));  // the graph may be a text that somebody wrote
    const auto& label = node.attributes.get<std::string>("label");
    const auto& groups = node.attributes.get<std::vector<int64_t>>("groups");
    module.name = label;
    if (node.location != 0) module.locations.push_back(graph.locations[node.location - 1]);
    std::array<uint32_t, 3> counts{};
    std::transform(groups.begin(), groups.end(), counts.begin(), [](int64_t n) { return static_cast<uint32_t>(n); });
    LS_CHECK(checkKernelLimits(module, counts, config.profile, node.location == 0 ? Location{} : graph.locations[node.location - 1]));
    addDispatch(node, kernels.add(label, std::move(module)), counts, label);
    return Success{};
  }

  [[nodiscard]] Location firstLoop() const {
    for (const NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (std::holds_alternative<LoopLowering>(*node.op->lower) && node.location != 0) return graph.locations[node.location - 1];
    }
    return {};
  }

  /// The rows of its stacks are made in their there.
  Status addLoop(const Node& node) {
    const LoopForm loop(node);
    LS_TRY(const Program body, schedule(loop.body(), config));
    LoopPlaces there;
    const auto rows = [&](ValueId stack, int64_t row) {
      const Place place = places.of(stack);
      const auto bytes = static_cast<int64_t>(rowType(graph.typeOf(stack)).byteSize());
      return LoopPlace{place.buffer, place.offset + static_cast<uint64_t>(row * bytes), loop.reverse ? -bytes : bytes};
    };
    const int64_t first = loop.position(0);
    std::set<size_t> after;
    for (size_t i = 0; i < loop.carries; ++i) {
      there.leaves[carryName(i)] = rows(node.results[i], loop.rowRead(first));
      there.outputs[carryName(i)] = rows(node.results[i], loop.rowWritten(first));
      const LoopPlace start = there.leaves[carryName(i)];
      after.insert(addCopy({node.operands[i], {start.buffer, start.offset}}));
    }
    for (size_t i = 0; i < loop.held; ++i) {
      const Place place = places.of(node.results[loop.carries + i]);
      there.states[heldName(i)] = {place.buffer, place.offset, 0};
      if (!places.madeInPlace().contains(node.results[loop.carries + i])) after.insert(addCopy({node.operands[loop.carries + i], place}));
    }
    for (size_t i = loop.firstResult(); i < node.results.size(); ++i)
      there.outputs[resultName(i - loop.firstResult())] = rows(node.results[i], first);
    for (size_t i = 0; i < loop.slices; ++i) there.leaves[sliceName(i)] = rows(node.operands[loop.firstSlice() + i], first);
    for (size_t i = 0; i < loop.captures; ++i) {
      const Place place = places.of(node.operands[loop.firstCapture() + i]);
      there.leaves[captureName(i)] = {place.buffer, place.offset, 0};
    }
    const size_t job = jobs.size();
    jobs.push_back({.command = {}, .after = std::move(after)});
    std::vector<Command> commands = loopCommands(body, there, program, kernels);
    jobs[job].is_loop = true;
    jobs[job].loop = std::move(commands);
    jobs[job].iterations = static_cast<uint32_t>(loop.iterations);
    for (const ValueId operand : node.operands) dependOn(job, operand);
    for (const ValueId result : node.results) maker[result] = job;
    return Success{};
  }

  void addDispatch(const Node& node, program::KernelId kernel, const std::array<uint32_t, 3>& groups, std::string label) {
    Dispatch dispatch{kernel, groups, {}};
    size_t job = jobs.size();
    jobs.push_back({});
    for (ValueId operand : node.operands) {
      dispatch.bindings.push_back(places.rangeOf(operand, kernel::Access::Read));
      dependOn(job, operand);
    }
    for (ValueId result : node.results) {
      dispatch.bindings.push_back(places.rangeOf(result, kernel::Access::ReadWrite));
      maker[result] = job;
    }
    jobs[job].command = {std::move(dispatch), 0, std::move(label)};
  }

  /// The names of the ops that compute, once each.
  std::string labelOf(const Node& group) const {
    std::string label;
    std::set<std::string_view> seen;
    for (NodeId id : graph[group.regions[0]].nodes) {
      const Node& node = graph[id];
      if (std::holds_alternative<ViewLowering>(*node.op->lower) || !seen.insert(*node.op->name).second) continue;
      label += fmt::format("{}{}", label.empty() ? "" : "+", *node.op->name);
    }
    return label.empty() ? "copy" : label;
  }

  size_t addCopy(const PendingCopy& copy) {
    const size_t job = jobs.size();
    jobs.push_back({});
    const Range source = places.rangeOf(copy.source, kernel::Access::Read);
    jobs[job].command = {Copy{source, {copy.target.buffer, copy.target.offset, source.size, kernel::Access::ReadWrite}}, 0,
                         "copy " + program[copy.target.buffer].name};
    dependOn(job, copy.source);
    return job;
  }
  /// The copies that make parts of a pack, or the next version of a state.
  void addCopies(ValueId made) {
    std::vector<CopyJob> added;
    for (const PendingCopy& copy : places.copiesFor(made)) {
      const uint64_t begin = copy.target.offset;
      added.push_back({begin, begin + graph.typeOf(copy.source).byteSize(), addCopy(copy)});
    }
    if (!added.empty()) copy_jobs[made] = std::move(added);
  }

  /// A writer of a state's next version waits for every reader of the old one.
  void orderStateWriters() {
    std::vector<Touch> touches;
    for (const auto& [leaf, jobs_reading] : readers) {
      const BufferId buffer = places.of(leaf).buffer;
      if (program[buffer].role != ArenaRole::State) continue;
      for (size_t reader : std::set(jobs_reading.begin(), jobs_reading.end())) {
        for (Range range : jobs[reader].touched()) {
          range.access = kernel::Access::Read;
          if (range.buffer == buffer) touches.push_back({range, reader});
        }
      }
    }
    for (size_t job = 0; job < jobs.size(); ++job) {
      for (const Range& range : jobs[job].touched()) {
        if (range.access != kernel::Access::Read && program[range.buffer].role == ArenaRole::State) touches.push_back({range, job});
      }
    }
    forEachConflict(std::move(touches), [&](const Touch& a, const Touch& b) {
      const bool a_writes = a.range.access != kernel::Access::Read, b_writes = b.range.access != kernel::Access::Read;
      if (a_writes != b_writes) jobs[a_writes ? a.by : b.by].after.insert(a_writes ? b.by : a.by);
    });
  }

  /// Places all jobs. The result is empty, or the states whose old version is read by what needs their update: such a reader and the update
  /// in its bytes wait for each other. Nothing where versions of one state are read that are not there at the same time.
  std::optional<std::set<ValueId>> placeJobs() {
    const std::vector<size_t> waiting = assignLevels(jobs);
    if (waiting.empty()) {
      placeCommands(std::move(jobs), program);
      return std::set<ValueId>();
    }
    std::set<ValueId> states;
    for (const auto& [value, state] : places.madeInPlace()) {
      if (std::ranges::find(waiting, maker.at(value)) != waiting.end()) states.insert(state);
    }
    if (!states.empty()) return states;
    if (version_writers.empty()) internalError("commands wait for each other");
    return std::nullopt;
  }
};

}  // namespace

namespace {

/// Nothing where states have to be updated by copies, which are then in `copied`.
Result<std::optional<Program>> scheduled(const Graph& graph, const ScheduleConfig& config, std::set<ValueId>& copied) {
  State state(graph, config, copied);
  // What reads a pack or an update waits for the copies that make it (dependOn), so these are added where the pack stands; other copies
  // come last.
  for (NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    if (std::holds_alternative<RegionLowering>(*node.op->lower)) LS_CHECK(state.addGroup(node));
    if (std::holds_alternative<KernelLowering>(*node.op->lower)) LS_CHECK(state.addKernel(node));
    if (std::holds_alternative<LoopLowering>(*node.op->lower)) LS_CHECK(state.addLoop(node));
    if (const auto* update = std::get_if<AliasUpdate>(&*node.op->alias); update != nullptr && update->at_index) {
      LS_CHECK(state.addUpdate(node));
      continue;
    }
    if (std::holds_alternative<AliasUpdate>(*node.op->alias)) LS_CHECK(state.checkWords(node));
    if (std::holds_alternative<AliasPack>(*node.op->alias) || std::holds_alternative<AliasUpdate>(*node.op->alias)) {
      state.addCopies(node.results[0]);
    }
  }
  for (const PendingCopy& copy : state.places.outputCopies()) state.addCopy(copy);
  state.orderStateWriters();
  state.orderVersions();
  std::optional<std::set<ValueId>> more = state.placeJobs();
  if (!more) {
    return fail("schedule.update", "an older version of what write_rows changes is read together with a newer one", {},
                "read what write_rows gives, or what it takes, but not both for one result");
  }
  if (!more->empty()) {
    copied.merge(*more);
    return std::optional<Program>();
  }
  if (const uint64_t runs = state.program.runsInLoops(); runs > program::kMostRuns) {
    return fail("schedule.loop", fmt::format("loops run {} commands per step, and the most is {}", runs, program::kMostRuns),
                state.firstLoop(), "run fewer iterations per step, for example over parts of the sequence");
  }
  state.program.kernels = state.kernels.take();
  return std::optional(std::move(state.program));
}

}  // namespace

Result<Program> schedule(const Graph& graph, const ScheduleConfig& config) {
  std::set<ValueId> copied;
  for (;;) {
    LS_TRY(std::optional<Program> program, scheduled(graph, config, copied));
    if (program) return std::move(*program);
  }
}

}  // namespace lockstep::passes
