// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/planned_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "frontend/train/templates.h"
#include "ir/graph/op_def.h"
#include "ir/program/limits.h"
#include "passes/emit/emit.h"
#include "passes/kernel/kernel_pipeline.h"
#include "runtime/memory_array.h"

namespace lockstep::tools {
namespace {

std::vector<double> numbersFor(const graph::TensorType& type) {
  std::vector<double> numbers(static_cast<size_t>(type.shape.elementCount()));
  if (!graph::isFloat(type.dtype)) return numbers;
  uint32_t state = 1;
  for (double& number : numbers) {
    state = state * 1664525 + 1013904223;  // any numbers that are not all alike
    number = static_cast<double>(state >> 8) / (1 << 23) - 1;
  }
  return numbers;
}

/// Dispatches of a submission on a GPU.
constexpr uint32_t kRunsPerSubmission = 8;

std::string arenaName(size_t slot) { return fmt::format("b{}", slot); }

/// A program that runs the kernel alone, on an arena for each of its operands and results.
Result<program::ValidProgram> emitProgram(const program::DeviceProfile& profile, const program::SymbolicKernel& kernel,
                                          const std::array<uint32_t, 3>& groups, const std::vector<graph::TensorType>& types,
                                          size_t inputs) {
  program::Program program;
  program.profile = profile;
  program::Dispatch dispatch{.kernel = program::KernelId(size_t{0}), .groups = groups, .bindings = {}};
  for (size_t i = 0; i < types.size(); ++i) {
    const uint64_t bytes = types[i].byteSize();
    const std::string name = arenaName(i);
    program.arenas.push_back({.name = name, .role = program::ArenaRole::State, .size = bytes});
    program.buffers.push_back(
        {.name = name, .type = types[i], .role = program::ArenaRole::State, .arena = program::ArenaId(i), .offset = 0, .size = bytes});
    dispatch.bindings.push_back({.buffer = program::BufferId(i),
                                 .offset = 0,
                                 .size = bytes,
                                 .access = i < inputs ? kernel::Access::Read : kernel::Access::ReadWrite});
  }
  program.kernels.push_back({.name = "k0", .code = kernel});
  // Several one after the other, so that a GPU has work while the host waits for it: clocks follow the load.
  const bool is_gpu = profile.style == program::ExecutionStyle::Gpu;
  for (uint32_t run = 0; run < (is_gpu ? kRunsPerSubmission : 1); ++run)
    program.commands.push_back({.action = dispatch, .level = run, .label = "k0"});
  LS_TRY(program, passes::emit(program, {profile, detail::templateSource()}));
  for (program::Kernel& emitted : program.kernels) emitted.code = passes::optimizeKernel(std::get<kernel::Module>(std::move(emitted.code)));
  return program::validate(std::move(program));
}

/// Calls `work` with each number below `count`, on as many threads as there are cores. A bug in one is thrown when all are done.
void inThreads(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> bugs(count);
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        bugs[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency())); ++i) helpers.emplace_back(run);
    run();
  }
  for (const std::exception_ptr& bug : bugs) {
    if (bug) std::rethrow_exception(bug);
  }
}

/// What results are filled with: words that are not a number as floats, and -1 as integers.
constexpr std::byte kUnwritten{0xff};

}  // namespace

Result<KernelMemory> KernelMemory::make(Backend& backend, const graph::Graph& body) {
  KernelMemory made;
  const auto add = [&](const graph::TensorType& type) -> Status {
    LS_TRY(std::shared_ptr<Memory> memory, backend.allocate(type.byteSize()));
    made.slots_.push_back({type, std::move(memory)});
    return Success{};
  };
  for (graph::NodeId id : body.body().nodes) {
    if (graph::leafKind(body[id]) != graph::LeafKind::Input) continue;
    const graph::TensorType& type = body.typeOf(body[id].results[0]);
    LS_CHECK(add(type));
    std::vector<std::byte> content = detail::encodeArray(type, numbersFor(type)).data;
    content.resize(type.byteSize());
    LS_CHECK(made.slots_.back().memory->write(0, content));
  }
  made.inputs_ = made.slots_.size();
  for (const graph::Output& output : body.outputs) LS_CHECK(add(body.typeOf(output.value)));
  return made;
}

std::vector<graph::TensorType> KernelMemory::types() const {
  std::vector<graph::TensorType> types;
  for (const Slot& slot : slots_) types.push_back(slot.type);
  return types;
}

Status KernelMemory::clearResults() const {
  for (size_t i = inputs_; i < slots_.size(); ++i) LS_CHECK(slots_[i].memory->write(0, std::vector(slots_[i].type.byteSize(), kUnwritten)));
  return Success{};
}

Result<KernelMemory::Contents> KernelMemory::results() const {
  Contents contents;
  for (size_t i = inputs_; i < slots_.size(); ++i) {
    contents.emplace_back(slots_[i].type.byteSize());
    LS_CHECK(slots_[i].memory->read(0, contents.back()));
  }
  return contents;
}

std::vector<double> KernelMemory::numbers(const Contents& results) const {
  std::vector<double> all;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::vector<double> values = detail::decodeMemory(slots_[inputs_ + i].type, results[i]);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<Result<PlannedKernel>> PlannedKernel::makeAll(Backend& backend, const graph::Graph& body,
                                                          std::span<const passes::PlanChoice> choices, const KernelMemory& memory) {
  const program::DeviceProfile& profile = backend.device().profile;
  ArenaSet arenas;
  for (size_t i = 0; i < memory.slots_.size(); ++i) arenas.emplace(arenaName(i), memory.slots_[i].memory);
  std::vector<std::optional<Result<program::ValidProgram>>> emitted(choices.size());
  inThreads(choices.size(), [&](size_t i) {
    emitted[i].emplace(emitProgram(profile, {body, choices[i].plan}, choices[i].groups, memory.types(), memory.inputs_));
  });
  std::vector<program::ValidProgram> programs;
  for (const auto& program : emitted) {
    if (program->ok()) programs.push_back(**program);
  }
  std::vector<Result<std::unique_ptr<Executable>>> executables = backend.compileAll(programs);
  auto next = executables.begin();
  const auto finish = [&](const Result<program::ValidProgram>& program) -> Result<PlannedKernel> {
    if (!program.ok()) return program.failure();
    PlannedKernel made;
    made.arenas_ = arenas;
    LS_TRY(made.executable_, std::move(*next++));
    return made;
  };
  std::vector<Result<PlannedKernel>> kernels;
  for (const auto& program : emitted) kernels.push_back(finish(*program));
  return kernels;
}

Result<double> PlannedKernel::fastest(int rounds) {
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    LS_TRY(const std::vector<CommandTime> times, executable_->time(arenas_, {}));
    for (const CommandTime& time : times) best = best == 0 ? time.seconds : std::min(best, time.seconds);
  }
  return best;
}

std::string PlannedKernel::facts() const {
  const std::vector<std::string> facts = executable_->kernelFacts();
  return facts.empty() ? "" : facts.front();
}

}  // namespace lockstep::tools
