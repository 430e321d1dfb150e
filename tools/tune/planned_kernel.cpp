// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/planned_kernel.h"

#include <fmt/format.h>

#include <algorithm>

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

Result<PlannedKernel> PlannedKernel::make(Backend& backend, const program::SymbolicKernel& kernel, const std::array<uint32_t, 3>& groups,
                                          const KernelMemory& memory) {
  PlannedKernel made;
  program::Program program;
  program.profile = backend.device().profile;
  program::Dispatch dispatch{.kernel = program::KernelId(size_t{0}), .groups = groups, .bindings = {}};
  for (size_t i = 0; i < memory.slots_.size(); ++i) {
    const graph::TensorType& type = memory.slots_[i].type;
    const uint64_t bytes = type.byteSize();
    const std::string name = fmt::format("b{}", i);
    program.arenas.push_back({.name = name, .role = program::ArenaRole::State, .size = bytes});
    program.buffers.push_back(
        {.name = name, .type = type, .role = program::ArenaRole::State, .arena = program::ArenaId(i), .offset = 0, .size = bytes});
    dispatch.bindings.push_back({.buffer = program::BufferId(i),
                                 .offset = 0,
                                 .size = bytes,
                                 .access = i < memory.inputs_ ? kernel::Access::Read : kernel::Access::ReadWrite});
    made.arenas_.emplace(name, memory.slots_[i].memory);
  }
  program.kernels.push_back({.name = "k0", .code = kernel});
  // Several one after the other, so that a GPU has work while the host waits for it: clocks follow the load.
  const bool is_gpu = program.profile.style == program::ExecutionStyle::Gpu;
  for (uint32_t run = 0; run < (is_gpu ? kRunsPerSubmission : 1); ++run)
    program.commands.push_back({.action = dispatch, .level = run, .label = "k0"});
  LS_TRY(program, passes::emit(program, {program.profile, detail::templateSource()}));
  for (program::Kernel& emitted : program.kernels) emitted.code = passes::optimizeKernel(std::get<kernel::Module>(std::move(emitted.code)));
  LS_TRY(const program::ValidProgram valid, program::validate(std::move(program)));
  LS_TRY(made.executable_, backend.compile(valid));
  return made;
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
