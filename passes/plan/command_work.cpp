// SPDX-License-Identifier: Apache-2.0
#include "passes/plan/command_work.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "ir/graph/op_def.h"
#include "passes/fuse/views.h"

namespace lockstep::passes {

using program::Command;
using program::Program;
using program::Range;

namespace {

uint64_t elements(const graph::Graph& body, graph::ValueId value) { return static_cast<uint64_t>(body.shapeOf(value).elementCount()); }

/// The operations of one node; absent for kinds that a body does not have.
struct Counter {
  const graph::Graph& body;
  const graph::Node& node;

  std::optional<uint64_t> operator()(const graph::ElementLowering&) const {
    return node.operands.empty() ? 0 : elements(body, node.results[0]);
  }
  std::optional<uint64_t> operator()(const graph::ReduceLowering&) const { return elements(body, node.operands[0]); }
  std::optional<uint64_t> operator()(const graph::ScanLowering& scan) const {
    const graph::Graph combine = scan.combine(body, node);
    return elements(body, node.operands[0]) * (combine.body().nodes.size() - 2 * node.operands.size());
  }
  std::optional<uint64_t> operator()(const graph::ScatterLowering&) const { return elements(body, node.operands[0]); }
  std::optional<uint64_t> operator()(const graph::ContractLowering& contract) const {
    const graph::ContractShape shape = contract.shape(body, node);
    return 2 * static_cast<uint64_t>(shape.batch) * static_cast<uint64_t>(shape.m) * static_cast<uint64_t>(shape.n) *
           static_cast<uint64_t>(shape.k);
  }
  std::optional<uint64_t> operator()(const graph::TemplateLowering& lowering) const {
    return static_cast<uint64_t>(lowering.shape(body, node).operations);
  }
  std::optional<uint64_t> operator()(const graph::ViewLowering&) const { return 0; }
  std::optional<uint64_t> operator()(const graph::StorageLowering&) const { return 0; }
  std::optional<uint64_t> operator()(const graph::DecomposeLowering&) const { return std::nullopt; }
  std::optional<uint64_t> operator()(const graph::KernelLowering&) const { return std::nullopt; }
  std::optional<uint64_t> operator()(const graph::LoopLowering&) const { return std::nullopt; }
  std::optional<uint64_t> operator()(const graph::RegionLowering&) const { return std::nullopt; }
};

std::optional<uint64_t> operationsOf(const graph::Graph& body) {
  uint64_t sum = 0;
  for (const graph::NodeId id : body.body().nodes) {
    const std::optional<uint64_t> own = std::visit(Counter{body, body[id]}, *body[id].op->lower);
    if (!own) return std::nullopt;
    sum += *own;
  }
  return sum;
}

/// Bytes of an arena.
struct Span {
  program::ArenaId arena;
  uint64_t begin = 0, end = 0;
  friend auto operator<=>(const Span&, const Span&) = default;
};

Span spanOf(const Program& program, const Range& range) {
  const program::Buffer& buffer = program[range.buffer];
  return {buffer.arena, buffer.offset + range.offset, buffer.offset + range.offset + range.size};
}

/// How many elements of operand `i` a body reads for so many elements of the node's result. What an index selects is read alone, and what
/// is computed element by element only where it counts.
uint64_t elementsRead(const graph::Graph& body, const graph::Node& node, size_t i, uint64_t results) {
  const uint64_t all = elements(body, node.operands[i]);
  if (!std::holds_alternative<graph::ElementLowering>(*node.op->lower)) return all;
  const bool is_selected = node.op->index != nullptr && i != node.op->index(body, node).operand;
  const bool is_alike = !std::get<graph::ElementLowering>(*node.op->lower).scalar_only;
  return is_selected || is_alike ? std::min(all, results) : all;
}

/// Of each input of a body, in their order, the part that it reads at most: 1 is all of it.
std::vector<double> partsRead(const graph::Graph& body) {
  std::map<graph::ValueId, uint64_t> read;
  for (const graph::Output& output : body.outputs) read[output.value] = elements(body, output.value);
  for (const graph::NodeId id : body.body().nodes | std::views::reverse) {
    const graph::Node& node = body[id];
    uint64_t results = 0;
    for (const graph::ValueId result : node.results) results = std::max(results, read[result]);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      uint64_t& its = read[node.operands[i]];
      its = std::min(elements(body, node.operands[i]), its + elementsRead(body, node, i, results));
    }
  }
  std::vector<double> parts;
  for (const graph::ValueId input : inputsOf(body))
    parts.push_back(static_cast<double>(read[input]) / static_cast<double>(std::max<uint64_t>(1, elements(body, input))));
  return parts;
}

/// Adds what a command of the plan accesses of each range.
void addParts(std::map<Span, double>& parts, const Program& planned, const Command& command) {
  const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
  const auto* symbolic = dispatch == nullptr ? nullptr : std::get_if<program::SymbolicKernel>(&planned[dispatch->kernel].code);
  const std::vector<double> read = symbolic == nullptr ? std::vector<double>() : partsRead(symbolic->body);
  const std::vector<Range> ranges = accesses(command);
  for (size_t i = 0; i < ranges.size(); ++i) parts[spanOf(planned, ranges[i])] += i < read.size() ? read[i] : 1;
}

bool overlap(const Span& a, const Span& b) { return a.arena == b.arena && a.begin < b.end && b.begin < a.end; }

/// `parts`: of the spans that the plan's commands access, how much.
uint64_t bytesOf(const Program& program, const Command& command, const std::map<Span, double>& parts) {
  std::set<Span> spans;
  for (const Range& range : accesses(command)) spans.insert(spanOf(program, range));
  uint64_t sum = 0, reached = 0;
  const Span* before = nullptr;
  for (const Span& span : spans) {
    if (before == nullptr || span.arena != before->arena) reached = 0;
    before = &span;
    const auto part = parts.find(span);
    const bool is_alone = std::ranges::count_if(spans, [&](const Span& other) { return overlap(span, other); }) == 1;
    const uint64_t from = std::max(span.begin, reached), left = span.end > from ? span.end - from : 0;
    sum += is_alone && part != parts.end() && part->second < 1 ? static_cast<uint64_t>(static_cast<double>(left) * part->second) : left;
    reached = std::max(reached, span.end);
  }
  return sum;
}

/// The calls that a kernel is for. A kernel that the user wrote has the lines of its own text as well; those belong to instructions.
std::vector<Location> callsOf(const kernel::Module& module) {
  std::vector<bool> own(module.locations.size(), false);
  for (const kernel::Instruction& instruction : module.instructions) {
    if (instruction.location != 0) own[instruction.location - 1] = true;
  }
  std::vector<Location> calls;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!own[i]) calls.push_back(module.locations[i]);
  }
  return calls;
}

void add(CommandWork& work, const Program& planned, const Command& part) {
  const auto* dispatch = std::get_if<program::Dispatch>(&part.action);
  if (dispatch == nullptr) return;
  const auto* symbolic = std::get_if<program::SymbolicKernel>(&planned[dispatch->kernel].code);
  const std::optional<uint64_t> own = symbolic == nullptr ? std::nullopt : operationsOf(symbolic->body);
  work.operations = own && work.operations ? std::optional(*work.operations + *own * planned.iterationsOf(part.level)) : std::nullopt;
  const std::vector<Location> lines =
      symbolic == nullptr ? callsOf(std::get<kernel::Module>(planned[dispatch->kernel].code)) : symbolic->body.locations;
  for (const Location& line : lines) {
    if (std::ranges::find(work.lines, line) == work.lines.end()) work.lines.push_back(line);
  }
}

}  // namespace

std::vector<std::vector<size_t>> findParts(const Program& planned, const Program& program) {
  // Commands of one level write different bytes, and merging keeps levels: so a byte that is written names the command.
  std::map<std::tuple<uint32_t, program::ArenaId, uint64_t>, size_t> writers;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    for (const Range& range : accesses(program.commands[i])) {
      const Span span = spanOf(program, range);
      if (range.access != kernel::Access::Read) writers.try_emplace({program.commands[i].level, span.arena, span.begin}, i);
    }
  }
  std::vector<std::vector<size_t>> parts(program.commands.size());
  for (size_t i = 0; i < planned.commands.size(); ++i) {
    const auto ranges = accesses(planned.commands[i]);
    const auto written = std::ranges::find_if(ranges, [](const Range& range) { return range.access != kernel::Access::Read; });
    if (written == ranges.end()) continue;
    const Span span = spanOf(planned, *written);
    if (const auto found = writers.find({planned.commands[i].level, span.arena, span.begin}); found != writers.end())
      parts[found->second].push_back(i);
  }
  return parts;
}

std::vector<CommandWork> countWork(const Program& planned, const Program& program) {
  const std::vector<std::vector<size_t>> parts = findParts(planned, program);
  const auto place = [](const Location& line) { return std::tie(line.file, line.line, line.column); };
  std::vector<CommandWork> work;
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Command& command = program.commands[i];
    std::map<Span, double> accessed;
    for (const size_t part : parts[i]) addParts(accessed, planned, planned.commands[part]);
    CommandWork one{.bytes = bytesOf(program, command, accessed) * program.iterationsOf(command.level), .operations = 0, .lines = {}};
    for (const size_t part : parts[i]) add(one, planned, planned.commands[part]);
    std::ranges::sort(one.lines, {}, place);
    work.push_back(std::move(one));
  }
  return work;
}

}  // namespace lockstep::passes
