// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/learn_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/vulkan/executable.h"
#include "ir/kernel/spread_matrices.h"
#include "ir/support/narrate.h"

namespace lockstep::vulkan {

namespace {

program::Program probeProgram(const kernel::Type& type, uint32_t lanes) {
  using namespace program;
  const uint64_t bytes = uint64_t{type.rows} * type.columns * sizeof(float);
  const graph::TensorType floats{graph::DType::F32, graph::Shape{static_cast<int64_t>(bytes / sizeof(float))}};
  Program made;
  made.arenas = {{"input", ArenaRole::Input, bytes}, {"output", ArenaRole::Output, bytes}};
  for (size_t i = 0; i < made.arenas.size(); ++i) {
    const Arena& arena = made.arenas[i];
    made.buffers.push_back(
        {.name = arena.name, .type = floats, .role = arena.role, .arena = ArenaId(i), .offset = 0, .size = bytes, .initial = 0});
  }
  made.inputs.push_back({.name = "numbers", .buffer = BufferId(0)});
  made.outputs.push_back({.name = "held", .kind = graph::OutputKind::Result, .buffer = BufferId(1)});
  made.kernels.push_back({"matrix_layout", layoutProbe(type, lanes)});
  const auto range = [&](size_t buffer, kernel::Access access) {
    return Range{.buffer = BufferId(buffer), .offset = 0, .size = bytes, .access = access};
  };
  Dispatch dispatch{
      .kernel = KernelId(0), .groups = {1, 1, 1}, .bindings = {range(0, kernel::Access::Read), range(1, kernel::Access::ReadWrite)}};
  made.commands.push_back({.action = std::move(dispatch), .level = 0, .label = "matrix_layout"});
  return made;
}

Result<std::optional<MatrixLayout>> probe(const std::shared_ptr<Context>& context, const kernel::Type& type) {
  const uint32_t lanes = context->facts().info.profile.subgroup_size;
  LS_TRY(const program::ValidProgram program, program::validate(probeProgram(type, lanes)));
  LS_TRY(const std::unique_ptr<Executable> executable, VulkanExecutable::compile(context, program));
  std::vector<float> numbers(size_t{type.rows} * type.columns);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const std::span<const std::byte> step = std::as_bytes(std::span(numbers));
  LS_TRY(const Ticket ticket, executable->submit({}, {&step, 1}));
  LS_TRY(const std::vector<std::vector<std::byte>> output, executable->wait(ticket));
  std::memcpy(numbers.data(), output.at(0).data(), numbers.size() * sizeof(float));
  std::vector<uint32_t> held;
  for (const float number : numbers) held.push_back(number >= 0 && number < 1e6f ? static_cast<uint32_t>(number) : UINT32_MAX);
  return fitLayout(type, lanes, held);
}

}  // namespace

Status learnLayouts(const std::shared_ptr<Context>& context, const program::ValidProgram& program) {
  for (size_t i = 0; i < program->kernels.size(); ++i) {
    const kernel::Module& module = *program.modules()[i];
    if (!kernel::hasSubgroupMatrices(module)) continue;
    for (const kernel::Instruction& in : module.instructions) {
      if (in.op != kernel::Op::SubgroupMatrixRow && in.op != kernel::Op::SubgroupMatrixColumn) continue;
      const kernel::Type type = module.typeOf(in.operands[0]);
      if (!suits(module, context->facts().matrices) || findLayout(context->facts().spirv, type) != nullptr) continue;
      std::optional<MatrixLayout> layout;
      // Only numbers in f32 are told apart by the probe; no kernel of ours asks for the places of others.
      if (type.scalar == kernel::Scalar::F32) {
        LS_TRY(layout, probe(context, type));
      }
      const std::string name = fmt::format("{}x{}", type.rows, type.columns);
      narrate([&] { return fmt::format("layout of matrices of {}: {}", name, layout ? "known" : "no sum of places, units are not used"); });
      if (layout) {
        context->learn(*layout);
      } else {
        context->forgetMatrices(type);
      }
    }
  }
  return Success{};
}

}  // namespace lockstep::vulkan
