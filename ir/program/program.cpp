// SPDX-License-Identifier: Apache-2.0
#include "ir/program/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/graph/text.h"
#include "ir/program/text.h"

namespace lockstep::program {
namespace {

constexpr size_t kMaxDiagnostics = 100;  ///< more help nobody

struct AccessLister {
  std::vector<Range> operator()(const Dispatch& dispatch) const { return dispatch.bindings; }
  // What a copy or a fill does to a range follows from its place, whatever its access says.
  std::vector<Range> operator()(const Copy& copy) const {
    return {as(copy.source, kernel::Access::Read), as(copy.target, kernel::Access::ReadWrite)};
  }
  std::vector<Range> operator()(const Fill& fill) const { return {as(fill.target, kernel::Access::ReadWrite)}; }

  static Range as(Range range, kernel::Access access) {
    range.access = access;
    return range;
  }
};

kernel::Module withoutLocations(kernel::Module module) {
  for (kernel::Instruction& instruction : module.instructions) instruction.location = 0;
  module.locations.clear();
  return module;
}

template <class Port>
const Port* findPort(const std::vector<Port>& ports, std::string_view name) {
  for (const Port& port : ports) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

}  // namespace

Range inIteration(Range range, uint32_t iteration) {
  range.offset = static_cast<uint64_t>(static_cast<int64_t>(range.offset) + range.step * int64_t{iteration});
  range.step = 0;
  return range;
}

Action inIteration(Action action, uint32_t iteration) {
  const auto move = [&](Range& range) { range = inIteration(range, iteration); };
  if (auto* dispatch = std::get_if<Dispatch>(&action)) std::ranges::for_each(dispatch->bindings, move);
  if (auto* fill = std::get_if<Fill>(&action)) move(fill->target);
  if (auto* copy = std::get_if<Copy>(&action)) {
    move(copy->source);
    move(copy->target);
  }
  return action;
}

const Loop* Program::loopOf(uint32_t level) const {
  const auto found = std::ranges::lower_bound(loops, level, {}, &Loop::last);
  return found != loops.end() && found->holds(level) ? &*found : nullptr;
}
uint64_t Program::runsInLoops() const {
  uint64_t runs = 0;
  for (const Command& command : commands) {
    const Loop* loop = loopOf(command.level);
    runs += loop == nullptr ? 0 : loop->iterations;
  }
  return runs;
}
uint32_t Program::iterationsOf(uint32_t level) const {
  const Loop* loop = loopOf(level);
  return loop == nullptr ? 1 : loop->iterations;
}

std::string_view toString(ArenaRole role) {
  static constexpr std::array<std::string_view, 5> kNames{"state", "input", "output", "constant", "workspace"};
  return kNames[static_cast<size_t>(role)];
}

ArenaId Program::findArena(ArenaRole role) const {
  for (size_t i = 0; i < arenas.size(); ++i) {
    if (arenas[i].role == role) return ArenaId(i);
  }
  return {};
}

const InputPort* Program::findInput(std::string_view name) const { return findPort(inputs, name); }
const OutputPort* Program::findOutput(std::string_view name) const { return findPort(outputs, name); }

std::vector<Range> accesses(const Command& command) { return std::visit(AccessLister{}, command.action); }

Program canonical(Program program) {
  for (Kernel& kernel : program.kernels) {
    if (auto* symbolic = std::get_if<SymbolicKernel>(&kernel.code)) {
      symbolic->body = graph::canonical(graph::withoutLocations(std::move(symbolic->body)));
    } else {
      auto& module = std::get<kernel::Module>(kernel.code);
      module = kernel::canonical(withoutLocations(std::move(module)));
    }
  }
  return program;
}

std::string describe(const Program& program, size_t command) {
  const std::string& label = program.commands[command].label;
  return label.empty() ? fmt::format("command {}", command) : fmt::format("command {} {}", command, quote(label));
}

void Problems::add(List list, size_t index, std::string code, std::string message, std::string remedy) {
  if (entries_.size() >= kMaxDiagnostics) return;
  entries_.push_back(
      {{.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)}, list, index});
}

void Problems::addKernel(size_t kernel, const std::vector<Diagnostic>& diagnostics) {
  for (Diagnostic diagnostic : diagnostics) {
    if (entries_.size() >= kMaxDiagnostics) return;
    diagnostic.message = fmt::format("kernel {}: {}", quote(program_.kernels[kernel].name), diagnostic.message);
    entries_.push_back({std::move(diagnostic), &TextLines::kernels, kernel});
  }
}

Status Problems::status() const {
  if (entries_.empty()) return Success{};
  TextLines lines;
  print(program_, &lines);
  Failure failure;
  for (const Entry& entry : entries_) {
    Diagnostic diagnostic = entry.diagnostic;
    const std::vector<uint32_t>& list = lines.*entry.list;
    uint32_t line = entry.index < list.size() ? list[entry.index] : 0;
    // Places in a kernel's own text become places in the program: it starts in the line below the kernel's.
    bool nested = entry.list == &TextLines::kernels && diagnostic.where.known();
    uint32_t column = nested && diagnostic.where.column != 0 ? diagnostic.where.column + kNestedIndent : 0;
    diagnostic.where = {.file = "program", .line = nested ? line + diagnostic.where.line : line, .column = column};
    failure.diagnostics.push_back(std::move(diagnostic));
  }
  return failure;
}

}  // namespace lockstep::program
