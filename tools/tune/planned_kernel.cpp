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

/// The types of a body's inputs, then of its results: the bindings of a dispatch.
std::vector<graph::TensorType> bindingTypes(const graph::Graph& body, size_t& inputs) {
  std::vector<graph::TensorType> types;
  for (graph::NodeId id : body.body().nodes) {
    if (graph::leafKind(body[id]) == graph::LeafKind::Input) types.push_back(body.typeOf(body[id].results[0]));
  }
  inputs = types.size();
  for (const graph::Output& output : body.outputs) types.push_back(body.typeOf(output.value));
  return types;
}

}  // namespace

Result<PlannedKernel> PlannedKernel::make(Backend& backend, const program::SymbolicKernel& kernel, const std::array<uint32_t, 3>& groups) {
  PlannedKernel made;
  program::Program program;
  program.profile = backend.device().profile;
  program::Dispatch dispatch{.kernel = program::KernelId(size_t{0}), .groups = groups, .bindings = {}};
  size_t inputs = 0;
  const std::vector<graph::TensorType> types = bindingTypes(kernel.body, inputs);
  for (size_t i = 0; i < types.size(); ++i) {
    const uint64_t bytes = types[i].byteSize();
    const std::string name = fmt::format("b{}", i);
    program.arenas.push_back({.name = name, .role = program::ArenaRole::State, .size = bytes});
    program.buffers.push_back(
        {.name = name, .type = types[i], .role = program::ArenaRole::State, .arena = program::ArenaId(i), .offset = 0, .size = bytes});
    dispatch.bindings.push_back({.buffer = program::BufferId(i),
                                 .offset = 0,
                                 .size = bytes,
                                 .access = i < inputs ? kernel::Access::Read : kernel::Access::ReadWrite});
    LS_TRY(std::shared_ptr<Memory> memory, backend.allocate(bytes));
    std::vector<std::byte> content = detail::encodeArray(types[i], numbersFor(types[i])).data;
    content.resize(bytes);
    LS_CHECK(memory->write(0, content));
    if (i >= inputs) made.results_.push_back({types[i], memory});
    made.arenas_.emplace(name, std::move(memory));
  }
  program.kernels.push_back({.name = "k0", .code = kernel});
  program.commands.push_back({.action = std::move(dispatch), .level = 0, .label = "k0"});
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
    const double seconds = times.front().seconds;
    best = round == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

Result<std::vector<double>> PlannedKernel::results() const {
  std::vector<double> all;
  for (const Slot& slot : results_) {
    std::vector<std::byte> content(slot.type.byteSize());
    LS_CHECK(slot.memory->read(0, content));
    const std::vector<double> values = detail::decodeMemory(slot.type, content);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace lockstep::tools
