// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/learn_layouts.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <vector>

#include "backends/vulkan/executable.h"
#include "ir/kernel/spread_matrices.h"
#include "ir/support/narrate.h"
#include "ir/support/narrow_float.h"

namespace lockstep::vulkan {

namespace {

/// Numbers of f16 are exact up to here.
constexpr uint32_t kExactHalves = 2048;

program::Program probeProgram(const kernel::Type& type, uint32_t lanes) {
  using namespace program;
  const int64_t size = int64_t{type.rows} * type.columns;
  const bool halves = type.scalar == kernel::Scalar::F16;
  const std::array types{graph::TensorType{halves ? graph::DType::F16 : graph::DType::F32, graph::Shape{size}},
                         graph::TensorType{graph::DType::F32, graph::Shape{size}}};
  const std::array bytes{static_cast<uint64_t>(size) * (halves ? 2 : 4), static_cast<uint64_t>(size) * 4};
  Program made;
  made.arenas = {{"input", ArenaRole::Input, bytes[0]}, {"output", ArenaRole::Output, bytes[1]}};
  for (size_t i = 0; i < made.arenas.size(); ++i) {
    const Arena& arena = made.arenas[i];
    made.buffers.push_back(
        {.name = arena.name, .type = types[i], .role = arena.role, .arena = ArenaId(i), .offset = 0, .size = bytes[i], .initial = 0});
  }
  made.inputs.push_back({.name = "numbers", .buffer = BufferId(0)});
  made.outputs.push_back({.name = "held", .kind = graph::OutputKind::Result, .buffer = BufferId(1)});
  made.kernels.push_back({"matrix_layout", layoutProbe(type, lanes)});
  const auto range = [&](size_t buffer, kernel::Access access) {
    return Range{.buffer = BufferId(buffer), .offset = 0, .size = bytes[buffer], .access = access};
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
  const size_t size = size_t{type.rows} * type.columns;
  std::vector<float> numbers(size);
  std::vector<uint16_t> halves(size);
  for (size_t i = 0; i < size; ++i) {
    numbers[i] = static_cast<float>(i);
    halves[i] = doubleToHalf(static_cast<double>(i));
  }
  const std::span<const std::byte> step =
      type.scalar == kernel::Scalar::F16 ? std::as_bytes(std::span(halves)) : std::as_bytes(std::span(numbers));
  LS_TRY(const Ticket ticket, executable->submit({}, {&step, 1}));
  LS_TRY(const std::vector<std::vector<std::byte>> output, executable->wait(ticket));
  std::memcpy(numbers.data(), output.at(0).data(), numbers.size() * sizeof(float));
  std::vector<uint32_t> held;
  for (const float number : numbers) held.push_back(number >= 0 && number < 1e6f ? static_cast<uint32_t>(number) : UINT32_MAX);
  return fitLayout(type, lanes, held);
}

/// No kernel can look into a matrix of bf16. We assume that it lies as one of f16 does, and the conformance suite checks it.
kernel::Type asProbed(kernel::Type type) {
  if (type.scalar == kernel::Scalar::BF16) type.scalar = kernel::Scalar::F16;
  return type;
}

/// The layout of matrices of this type, if MatrixLayout can describe it; asked for at first.
Result<const MatrixLayout*> learn(const std::shared_ptr<Context>& context, const kernel::Type& type) {
  const bool halves = type.scalar == kernel::Scalar::F16;
  if (const MatrixLayout* known = findLayout(context->facts().spirv, type)) return known;
  std::optional<MatrixLayout> layout;
  if (!halves || (context->facts().info.profile.f16 && uint32_t{type.rows} * type.columns <= kExactHalves)) {
    LS_TRY(layout, probe(context, type));
  }
  narrate([&] {
    return fmt::format("layout of {}x{} {} matrices: {}", type.rows, type.columns, halves ? "f16" : "f32",
                       layout ? "known" : "no sum of places, units do not take kernels that ask for it");
  });
  if (!layout) return nullptr;
  context->learn(*layout);
  return findLayout(context->facts().spirv, type);
}

/// Whether the device can do in registers what the instruction asks.
Result<bool> works(const std::shared_ptr<Context>& context, const kernel::Module& module, const kernel::Instruction& in) {
  LS_TRY(const MatrixLayout* layout, learn(context, module.typeOf(in.operands[0])));
  if (layout == nullptr) return false;
  if (in.op == kernel::Op::SubgroupMatrixRowMax || in.op == kernel::Op::SubgroupMatrixRowSum) return lanesOfRow(*layout).has_value();
  if (in.op != kernel::Op::SubgroupMatrixConvert) return true;
  const MatrixLayout from = *layout;  // what is learnt next may move it
  LS_TRY(const MatrixLayout* to, learn(context, asProbed(module.types[in.type])));
  return to != nullptr && holdAlike(from, *to);
}

}  // namespace

Status learnLayouts(const std::shared_ptr<Context>& context, const program::ValidProgram& program) {
  for (size_t i = 0; i < program->kernels.size(); ++i) {
    const kernel::Module& module = *program.modules()[i];
    if (!kernel::hasSubgroupMatrices(module)) continue;
    for (const kernel::Instruction& in : module.instructions) {
      if (!needsLayout(in.op) || !suits(module, context->facts().matrices)) continue;
      LS_TRY(const bool in_registers, works(context, module, in));
      if (!in_registers) context->scatter({.op = in.op, .operand = module.typeOf(in.operands[0])});
    }
  }
  return Success{};
}

}  // namespace lockstep::vulkan
