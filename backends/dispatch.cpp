// SPDX-License-Identifier: Apache-2.0
#include "backends/dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "ir/kernel/isolate_entry.h"

namespace lockstep {
namespace {

constexpr uint64_t kArenaAlignment = 256;

uint64_t roundUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

std::vector<kernel::GlobalVariable*> boundVariables(kernel::Module& module) {
  std::vector<kernel::GlobalVariable*> variables;
  for (kernel::GlobalVariable& variable : module.globals) {
    if (kernel::isBound(variable.space)) variables.push_back(&variable);
  }
  std::ranges::sort(variables, {}, [](const kernel::GlobalVariable* variable) { return std::tuple(variable->group, variable->binding); });
  return variables;
}

Result<program::Range> rangeOf(const KernelDispatch& dispatch, const kernel::Module& module, const kernel::GlobalVariable& variable) {
  const std::string what =
      fmt::format("binding {}.{} ({}: {})", variable.group, variable.binding, variable.name, module.types.toString(variable.type));
  const auto binding = std::ranges::find_if(
      dispatch.bindings, [&](const BufferBinding& b) { return b.group == variable.group && b.binding == variable.binding; });
  if (binding == dispatch.bindings.end()) {
    return fail("run.bind", fmt::format("{} has no value", what), {},
                fmt::format("add --bind {}.{}=FILE.npy or another value", variable.group, variable.binding));
  }
  const uint64_t least = module.types.sizeOf(variable.type);
  if (binding->size < least) return fail("run.bind", fmt::format("{} needs at least {} bytes but has {}", what, least, binding->size));
  const uint64_t room = binding->buffer < dispatch.buffer_sizes.size() ? dispatch.buffer_sizes[binding->buffer] : 0;
  if (binding->offset > room || binding->size > room - binding->offset) {  // a sum could wrap
    return fail("run.bind", fmt::format("{} does not lie within its buffer", what));
  }
  const bool writes = variable.space == kernel::AddressSpace::Storage && variable.access != kernel::Access::Read;
  return program::Range{.buffer = program::BufferId(binding->buffer),
                        .offset = binding->offset,
                        .size = binding->size,
                        .access = writes ? kernel::Access::ReadWrite : kernel::Access::Read};
}

/// The words of the immediate variable; none where the entry point has no such variable.
Result<std::vector<uint32_t>> immediatesOf(const KernelDispatch& dispatch, const kernel::Module& module) {
  const auto variable = std::ranges::find(module.globals, kernel::AddressSpace::Immediate, &kernel::GlobalVariable::space);
  if (variable == module.globals.end()) return std::vector<uint32_t>();
  const uint64_t size = kernel::immediateBytes(module), given = dispatch.immediates.size();
  if (given != size) {
    const std::string what = fmt::format("immediate variable {}: {}", variable->name, module.types.toString(variable->type));
    return fail("run.bind", given == 0 ? fmt::format("{} has no value", what) : fmt::format("{} takes {} bytes, not {}", what, size, given),
                {}, "add --immediate FILE.npy or another value of this size");
  }
  std::vector<uint32_t> words(size / sizeof(uint32_t));
  std::memcpy(words.data(), dispatch.immediates.data(), size);
  return words;
}

}  // namespace

Result<program::ValidProgram> makeProgram(const KernelDispatch& dispatch) {
  LS_TRY(kernel::Module module, kernel::isolateEntry(dispatch.module, dispatch.entry));
  program::Program program;
  program.profile = program::unlimitedProfile("device");  // the backend compares with the limits of its device
  for (size_t i = 0; i < dispatch.buffer_sizes.size(); ++i) {
    const std::string name = fmt::format("buffer{}", i);
    const uint64_t size = roundUp(dispatch.buffer_sizes[i], sizeof(uint32_t));
    program.arenas.push_back({.name = name, .role = program::ArenaRole::State, .size = roundUp(size, kArenaAlignment)});
    program.buffers.push_back({.name = name,
                               .type = {.dtype = graph::DType::U32, .shape = graph::Shape{static_cast<int64_t>(size / 4)}},
                               .role = program::ArenaRole::State,
                               .arena = program::ArenaId(i),
                               .offset = 0,
                               .size = size,
                               .initial = 0});
  }
  program::Dispatch action{.kernel = program::KernelId(size_t{0}), .groups = dispatch.groups, .bindings = {}};
  for (kernel::GlobalVariable* variable : boundVariables(module)) {
    LS_TRY(const program::Range range, rangeOf(dispatch, module, *variable));
    variable->group = 0;
    variable->binding = static_cast<uint32_t>(action.bindings.size());
    action.bindings.push_back(range);
  }
  LS_TRY(action.immediates, immediatesOf(dispatch, module));
  const std::string label = module.entryPoint()->name;
  program.kernels.push_back({.name = label, .code = kernel::canonical(module, true)});
  program.commands.push_back({.action = std::move(action), .level = 0, .label = label});
  return program::validate(std::move(program));
}

Result<PreparedDispatch> PreparedDispatch::make(Backend& backend, const program::ValidProgram& program) {
  PreparedDispatch dispatch;
  LS_TRY(dispatch.executable_, backend.compile(program));
  for (const program::Arena& arena : program->arenas) {
    LS_TRY(const std::shared_ptr<Memory> memory, backend.allocate(arena.size));
    dispatch.memories_.push_back(memory);
    dispatch.arenas_.emplace(arena.name, memory);
  }
  return dispatch;
}

Status PreparedDispatch::run(std::vector<Bytes>& buffers, const std::set<size_t>& unwritten) {
  for (size_t i = 0; i < buffers.size(); ++i) LS_CHECK(memories_[i]->write(0, buffers[i]));
  for (const size_t i : unwritten) LS_CHECK(memories_[i]->forget());
  const std::span<const std::byte> no_input;
  LS_TRY(const Ticket ticket, executable_->submit(arenas_, std::span(&no_input, 1)));
  LS_CHECK(executable_->wait(ticket));
  for (size_t i = 0; i < buffers.size(); ++i) LS_CHECK(memories_[i]->read(0, buffers[i]));
  return Success{};
}

Result<double> PreparedDispatch::time() {
  LS_TRY(const std::vector<CommandTime> times, executable_->time(arenas_, {}));
  double seconds = 0;
  for (const CommandTime& time : times) seconds += time.seconds;
  return seconds;
}

RoundingBounds PreparedDispatch::bounds(size_t buffer) const {
  return executable_->bounds({.buffer = program::BufferId(buffer), .offset = 0, .size = memories_[buffer]->size()});
}

Status runDispatch(Backend& backend, const program::ValidProgram& program, std::vector<Bytes>& buffers) {
  LS_TRY(PreparedDispatch dispatch, PreparedDispatch::make(backend, program));
  return dispatch.run(buffers);
}

}  // namespace lockstep
