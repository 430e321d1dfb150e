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
#include "passes/schedule/in_place.h"
#include "passes/schedule/jobs.h"
#include "passes/schedule/kernel_limits.h"
#include "passes/schedule/kernel_table.h"
#include "passes/schedule/loop_commands.h"
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

struct Place {
  BufferId buffer;
  uint64_t offset = 0;  // bytes
};

struct State {
  const Graph& graph;
  const ScheduleConfig& config;
  Program program;
  std::map<ValueId, Place> places;
  std::vector<Job> jobs;
  std::map<ValueId, size_t> maker;                 // job that makes a group's result
  std::map<ValueId, std::vector<size_t>> readers;  // jobs that read a state leaf
  KernelTable kernels;
  std::map<ValueId, size_t> uses;            // counted only where mayOwn() asks
  std::map<ValueId, ValueId> storage;        // by version of a state: the leaf
  const std::set<ValueId>& copied;           // states that are updated by copies in any case
  std::map<ValueId, ValueId> in_place = {};  // by value that is made in the bytes of a state: the state

  BufferId newBuffer(std::string name, const TensorType& type, ArenaRole role, double initial = 0) {
    program.buffers.push_back({std::move(name), type, role, {}, 0, type.byteSize(), initial});
    return BufferId(program.buffers.size() - 1);
  }

  /// The leaf or group result that a chain of contiguous slices starts from.
  ValueId root(ValueId value) const {
    while (std::holds_alternative<ViewLowering>(*graph.definition(value).op->lower)) value = graph.definition(value).operands[0];
    return value;
  }

  /// The leaf that a state's version belongs to, or the root of any other value.
  ValueId storageOf(ValueId value) {
    value = root(value);
    const Node& node = graph.definition(value);
    if (!std::holds_alternative<AliasUpdate>(*node.op->alias)) return value;
    if (const auto found = storage.find(value); found != storage.end()) return found->second;
    const ValueId leaf = storageOf(node.operands[0]);
    return storage[value] = leaf;
  }

  Place placeOf(ValueId value) {
    if (auto found = places.find(value); found != places.end()) return found->second;
    const Node& node = graph.definition(value);
    Place place;
    if (const auto* view = std::get_if<ViewLowering>(&*node.op->lower)) {
      int64_t start = 0;
      if (!isContiguousSlice(view->map(graph, node), graph.shapeOf(value), graph.shapeOf(node.operands[0]),
                             sliceAlignment(graph.typeOf(value).dtype), start)) {
        internalError(fmt::format("schedule met the view '{}' outside a group", *node.op->name));
      }
      place = placeOf(node.operands[0]);
      place.offset += static_cast<uint64_t>(start) * byteSize(graph.typeOf(value).dtype);
    } else if (std::holds_alternative<AliasUpdate>(*node.op->alias) || std::holds_alternative<AliasView>(*node.op->alias)) {
      place = placeOf(node.operands[0]);
    } else {
      place.buffer = newBuffer(graph[value].name.empty() ? fmt::format("t{}", value.value) : graph[value].name, graph.typeOf(value),
                               ArenaRole::Workspace);
    }
    places[value] = place;
    return place;
  }

  Range rangeOf(ValueId value, kernel::Access access) {
    Place place = placeOf(value);
    return {place.buffer, place.offset, graph.typeOf(value).byteSize(), access};
  }

  void placeLeaves() {
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (!std::holds_alternative<StorageLowering>(*node.op->lower) || !node.operands.empty()) continue;
      ValueId value = node.results[0];
      const TensorType& type = graph.typeOf(value);
      const LeafKind kind = leafKind(node);
      if (kind == LeafKind::Data) {
        places[value] = {newBuffer(fmt::format("constant{}", program.constants.size()), type, ArenaRole::Constant), 0};
        program.constants.push_back({places[value].buffer, words(graph[node.attributes.get<ConstantId>("data")])});
        continue;
      }
      const auto& name = node.attributes.get<std::string>("name");
      if (kind == LeafKind::State) {
        places[value] = {newBuffer(name, type, ArenaRole::State, node.attributes.get<double>("init")), 0};
        program.states.push_back({places[value].buffer});
      } else {
        places[value] = {newBuffer(name, type, ArenaRole::Input), 0};
        const auto number = [&](std::string_view key) -> std::optional<int64_t> {
          const graph::Attribute* given = node.attributes.find(key);
          return given == nullptr ? std::nullopt : std::optional(std::get<int64_t>(*given));
        };
        program.inputs.push_back({name, places[value].buffer, program::BatchSource{number("below"), number("ignored")}});
      }
    }
  }

  static std::vector<uint32_t> words(const Constant& constant) {
    const DType dtype = constant.type.dtype;
    const auto per_word = static_cast<size_t>(elementsPerWord(dtype));
    const auto bits = static_cast<uint32_t>(8 * byteSize(dtype));
    std::vector<uint32_t> out((constant.data.size() + per_word - 1) / per_word);
    for (size_t i = 0; i < constant.data.size(); ++i) {
      out[i / per_word] |= encodeElement(dtype, constant.data[i]) << (i % per_word * bits);
    }
    return out;
  }

  /// Whether a value can be made in the bytes of a pack, an output or a state. Where a dispatch cannot read one part of a buffer and write
  /// another, a value that is also used elsewhere is made in the workspace and copied.
  bool mayOwn(ValueId value) const {
    const Lowering& lower = *graph.definition(value).op->lower;
    bool made = std::holds_alternative<RegionLowering>(lower) || std::holds_alternative<KernelLowering>(lower) ||
                std::holds_alternative<LoopLowering>(lower);
    if (!made || places.contains(value)) return false;
    return !config.profile.whole_buffer_access || uses.at(value) == 1;
  }
  /// How often nodes and outputs read each leaf and each result of a group, through slices or not.
  std::map<ValueId, size_t> countUses() const {
    std::map<ValueId, size_t> counts;
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (std::holds_alternative<ViewLowering>(*node.op->lower)) continue;
      for (ValueId operand : node.operands) ++counts[root(operand)];
    }
    for (const Output& output : graph.outputs) ++counts[root(output.value)];
    return counts;
  }

  /// Parts of a pack are made in their slices of it. The pack keeps its padding at zero between steps, so it is a state.
  void placePacks() {
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      if (!std::holds_alternative<AliasPack>(*node.op->alias)) continue;
      ValueId pack = node.results[0];
      places[pack] = {newBuffer(graph[pack].name.empty() ? "pack" : graph[pack].name, graph.typeOf(pack), ArenaRole::State), 0};
      const auto& offsets = node.attributes.get<std::vector<int64_t>>("offsets");
      for (size_t i = 0; i < node.operands.size(); ++i) {
        ValueId part = root(node.operands[i]);
        Place slice{places[pack].buffer, static_cast<uint64_t>(offsets[i]) * byteSize(graph.typeOf(pack).dtype)};
        if (mayOwn(part)) {
          places[part] = slice;
        } else {
          copies[pack].push_back({node.operands[i], slice});
        }
      }
    }
  }

  struct PendingCopy {
    ValueId source;
    Place target;
  };
  std::map<ValueId, std::vector<PendingCopy>> copies;  // by the pack or state that is complete once they have run
  std::vector<PendingCopy> output_copies;

  void placeOutputs() {
    for (const Output& output : graph.outputs) {
      if (output.kind == OutputKind::NextState) continue;
      ValueId value = root(output.value);
      BufferId buffer = newBuffer(output.name, graph.typeOf(output.value), ArenaRole::Output);
      program.outputs.push_back({output.name, output.kind, buffer});
      if (mayOwn(value)) {
        places[value] = {buffer, 0};
      } else {
        output_copies.push_back({output.value, {buffer, 0}});
      }
    }
  }

  static bool overlap(const Range& a, const Range& b) {
    return a.buffer == b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
  }

  /// update_slice(state, value): value is made in the state's own bytes when its group does not read them, or is a map that reads each
  /// element where it writes it.
  void placeUpdates() {
    for (NodeId id : graph.body().nodes) {
      const Node& node = graph[id];
      const auto* update = std::get_if<AliasUpdate>(&*node.op->alias);
      if (update == nullptr || update->at_index) continue;
      Place target = placeOf(node.operands[0]);
      target.offset += static_cast<uint64_t>(node.attributes.get<int64_t>("offset")) * byteSize(graph.typeOf(node.operands[0]).dtype);
      ValueId value = root(node.operands[1]);
      Range written{target.buffer, target.offset, graph.typeOf(node.operands[1]).byteSize(), kernel::Access::ReadWrite};
      const ValueId state = storageOf(node.operands[0]);
      const bool is_bound_there = written.offset % config.profile.min_offset_alignment == 0;
      const bool is_free = is_bound_there && !copied.contains(state) && mayOwn(value);
      if (is_free && updatesInPlace(graph.definition(value), state, written)) {
        places[value] = target;
        in_place[value] = state;
      } else {
        copies[node.results[0]].push_back({node.operands[1], target});
      }
    }
  }

  [[nodiscard]] bool updatesInPlace(const Node& group, ValueId state, const Range& written) {
    if (std::holds_alternative<LoopLowering>(*group.op->lower)) return false;
    std::set<ValueId> old;  // what is made of the bytes that are written
    for (ValueId operand : group.operands) {
      if (storageOf(operand) != state) continue;
      Range range = rangeOf(operand, kernel::Access::Read);
      if (!overlap(range, written)) continue;
      if (range.offset != written.offset || range.size != written.size) return false;
      old.insert(operand);
    }
    if (old.empty()) return true;
    const bool is_map = std::holds_alternative<RegionLowering>(*group.op->lower) && kindOf(group) == GroupKind::Map;
    return is_map && readAtOwnPosition(graph, graph[group.regions[0]].nodes, std::move(old));
  }

  // Commands.

  void dependOn(size_t job, ValueId value) {
    ValueId base = root(value);
    const Node& node = graph.definition(base);
    std::set<size_t>& after = jobs[job].after;
    if (auto made = maker.find(base); made != maker.end()) after.insert(made->second);
    if (auto copied = copy_jobs.find(base); copied != copy_jobs.end()) {
      const Range read = rangeOf(value, kernel::Access::Read);
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
  std::map<ValueId, std::vector<size_t>> version_readers = {};  // by version of a state that update_rows made: the jobs that need it
  std::map<ValueId, size_t> version_writers = {};               // by such a version: the job that overwrites rows of it

  /// Rows of a state that a value names are written by a kernel of their own.
  Status addUpdate(const Node& node) {
    const TensorType &state = graph.typeOf(node.operands[0]), &rows = graph.typeOf(node.operands[1]);
    const RowUpdate update = updateRows(state, rows, node.attributes.get<int64_t>("axis"), config.profile);
    LS_CHECK(checkKernelLimits(update.module, update.groups, config.profile, locationOf(node)));
    const ValueId before = root(node.operands[0]);
    const auto* older = std::get_if<AliasUpdate>(&*graph.definition(before).op->alias);
    if (program[placeOf(storageOf(before)).buffer].role != ArenaRole::State || (older != nullptr && !older->at_index))
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
    const Dispatch dispatch{kernels.add("update_rows", update.module),
                            update.groups,
                            {rangeOf(node.operands[0], kernel::Access::ReadWrite), rangeOf(node.operands[1], kernel::Access::Read),
                             rangeOf(node.operands[2], kernel::Access::Read)}};
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

  /// A copy and the bytes that it writes.
  struct CopyJob {
    uint64_t begin, end;
    size_t job;
  };
  std::map<ValueId, std::vector<CopyJob>> copy_jobs;  // by what they make, in the order of their bytes

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

  /// The rows of its stacks are made in their places.
  Status addLoop(const Node& node) {
    const LoopForm loop(node);
    LS_TRY(const Program body, schedule(loop.body(), config));
    LoopPlaces places;
    const auto rows = [&](ValueId stack, int64_t row) {
      const Place place = placeOf(stack);
      const auto bytes = static_cast<int64_t>(rowType(graph.typeOf(stack)).byteSize());
      return LoopPlace{place.buffer, place.offset + static_cast<uint64_t>(row * bytes), loop.reverse ? -bytes : bytes};
    };
    const int64_t first = loop.position(0);
    std::set<size_t> after;
    for (size_t i = 0; i < loop.carries; ++i) {
      places.leaves[carryName(i)] = rows(node.results[i], loop.rowRead(first));
      places.outputs[carryName(i)] = rows(node.results[i], loop.rowWritten(first));
      const LoopPlace start = places.leaves[carryName(i)];
      after.insert(addCopy({node.operands[i], {start.buffer, start.offset}}));
    }
    for (size_t i = 0; i < loop.held; ++i) {
      const Place place = placeOf(node.results[loop.carries + i]);
      places.states[heldName(i)] = {place.buffer, place.offset, 0};
      after.insert(addCopy({node.operands[loop.carries + i], place}));
    }
    for (size_t i = loop.firstResult(); i < node.results.size(); ++i)
      places.outputs[resultName(i - loop.firstResult())] = rows(node.results[i], first);
    for (size_t i = 0; i < loop.slices; ++i) places.leaves[sliceName(i)] = rows(node.operands[loop.firstSlice() + i], first);
    for (size_t i = 0; i < loop.captures; ++i) {
      const Place place = placeOf(node.operands[loop.firstCapture() + i]);
      places.leaves[captureName(i)] = {place.buffer, place.offset, 0};
    }
    const size_t job = jobs.size();
    jobs.push_back({.command = {}, .after = std::move(after)});
    std::vector<Command> commands = loopCommands(body, places, program, kernels);
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
      dispatch.bindings.push_back(rangeOf(operand, kernel::Access::Read));
      dependOn(job, operand);
    }
    for (ValueId result : node.results) {
      dispatch.bindings.push_back(rangeOf(result, kernel::Access::ReadWrite));
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
    const Range source = rangeOf(copy.source, kernel::Access::Read);
    jobs[job].command = {Copy{source, {copy.target.buffer, copy.target.offset, source.size, kernel::Access::ReadWrite}}, 0,
                         "copy " + program[copy.target.buffer].name};
    dependOn(job, copy.source);
    return job;
  }
  /// The copies that make parts of a pack, or the next version of a state.
  void addCopies(ValueId made) {
    const auto pending = copies.find(made);
    if (pending == copies.end()) return;
    std::vector<CopyJob> added;
    for (const PendingCopy& copy : pending->second) {
      const uint64_t begin = copy.target.offset;
      added.push_back({begin, begin + graph.typeOf(copy.source).byteSize(), addCopy(copy)});
    }
    copy_jobs[made] = std::move(added);
  }

  /// A writer of a state's next version waits for every reader of the old one.
  void orderStateWriters() {
    std::vector<Touch> touches;
    for (const auto& [leaf, jobs_reading] : readers) {
      const BufferId buffer = places.at(leaf).buffer;
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
    for (const auto& [value, state] : in_place) {
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
  State state{.graph = graph,
              .config = config,
              .program = {},
              .places = {},
              .jobs = {},
              .maker = {},
              .readers = {},
              .kernels = {},
              .uses = {},
              .storage = {},
              .copied = copied,
              .copies = {},
              .output_copies = {},
              .copy_jobs = {}};
  state.program.profile = config.profile;
  state.program.parameters = graph.parameters;
  if (config.profile.whole_buffer_access) state.uses = state.countUses();
  state.placeLeaves();
  state.placeUpdates();
  state.placePacks();
  state.placeOutputs();
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
  for (const State::PendingCopy& copy : state.output_copies) state.addCopy(copy);
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
