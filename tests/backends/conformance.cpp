// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/conformance.h"

#include <cstring>
#include <map>

#include <fmt/format.h>

namespace lockstep::conformance {
namespace {

constexpr uint64_t kAlignment = 256;

uint64_t alignUp(uint64_t x) { return (x + kAlignment - 1) / kAlignment * kAlignment; }

bool isWritten(const kernel::Module& module, size_t binding) {
  for (const kernel::GlobalVariable& global : module.globals)
    if (global.space == kernel::AddressSpace::Storage && global.binding == binding) return global.access != kernel::Access::Read;
  return false;
}

/// Input arena -> (copy) -> workspace -> (dispatch) -> (copy) -> output arena, each buffer at the same offset in all three.
program::Program makeProgram(const kernel::Module& module, const std::vector<Words>& buffers, std::array<uint32_t, 3> groups,
                             const Words& immediates) {
  using namespace program;
  Program program;
  uint64_t total = 0;
  for (const Words& words : buffers) total = alignUp(total) + words.size() * 4;
  constexpr std::array<ArenaRole, 3> kRoles{ArenaRole::Input, ArenaRole::Workspace, ArenaRole::Output};
  for (ArenaRole role : kRoles) program.arenas.push_back({std::string(toString(role)), role, total});
  program.kernels.push_back({"kernel", module});
  Dispatch dispatch{.kernel = KernelId(0), .groups = groups, .bindings = {}, .immediates = immediates};
  uint64_t offset = 0;
  for (size_t k = 0; k < buffers.size(); ++k) {
    uint64_t bytes = buffers[k].size() * 4;
    graph::TensorType type{graph::DType::U32, graph::Shape{static_cast<int64_t>(buffers[k].size())}};
    std::array<Range, 3> ranges;
    for (size_t role = 0; role < 3; ++role) {
      std::string name = fmt::format("{}{}", toString(kRoles[role]), k);
      program.buffers.push_back(
          {.name = name, .type = type, .role = kRoles[role], .arena = ArenaId(role), .offset = offset, .size = bytes, .initial = 0});
      ranges[role] = {.buffer = BufferId(program.buffers.size() - 1), .offset = 0, .size = bytes, .access = kernel::Access::ReadWrite};
    }
    program.inputs.push_back({.name = fmt::format("input{}", k), .buffer = ranges[0].buffer});
    program.outputs.push_back({.name = fmt::format("output{}", k), .kind = graph::OutputKind::Result, .buffer = ranges[2].buffer});
    ranges[0].access = kernel::Access::Read;
    program.commands.push_back({.action = Copy{ranges[0], ranges[1]}, .level = 0, .label = "in"});
    dispatch.bindings.push_back(ranges[1]);
    if (!isWritten(module, k)) dispatch.bindings.back().access = kernel::Access::Read;
    offset = alignUp(offset + bytes);
  }
  program.commands.push_back({.action = dispatch, .level = 1, .label = "kernel"});
  for (size_t k = 0; k < buffers.size(); ++k) {
    Range source = dispatch.bindings[k];
    source.access = kernel::Access::Read;
    Range target{.buffer = program.outputs[k].buffer, .offset = 0, .size = source.size, .access = kernel::Access::ReadWrite};
    program.commands.push_back({.action = Copy{source, target}, .level = 2, .label = "out"});
  }
  return program;
}

}  // namespace

std::string caseName(const testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

Words wordsOf(const std::vector<float>& values) {
  Words words;
  for (float value : values) words.push_back(bitsOf(value));
  return words;
}

Result<std::vector<Words>> runKernel(Backend& backend, const kernel::Module& module, const std::vector<Words>& buffers,
                                     std::array<uint32_t, 3> groups, const Words& immediates, const program::DeviceProfile& profile) {
  program::Program made = makeProgram(module, buffers, groups, immediates);
  made.profile = profile;
  LS_TRY(program::ValidProgram program, program::validate(std::move(made)));
  LS_TRY(std::unique_ptr<Executable> executable, backend.compile(program));
  std::vector<std::byte> input(program->arenas[0].size);
  for (size_t k = 0; k < buffers.size(); ++k) {
    uint64_t offset = (*program)[program->inputs[k].buffer].offset;
    std::memcpy(input.data() + offset, buffers[k].data(), buffers[k].size() * 4);
  }
  std::span<const std::byte> step(input);
  LS_TRY(Ticket ticket, executable->submit({}, {&step, 1}));
  LS_TRY(std::vector<std::vector<std::byte>> output, executable->wait(ticket));
  std::vector<Words> results;
  for (size_t k = 0; k < buffers.size(); ++k) {
    results.emplace_back(buffers[k].size());
    std::memcpy(results[k].data(), output[0].data() + (*program)[program->outputs[k].buffer].offset, buffers[k].size() * 4);
  }
  return results;
}

Result<std::vector<Words>> runText(Backend& backend, std::string_view body, const std::vector<Words>& buffers,
                                   std::array<uint32_t, 3> groups) {
  LS_TRY(kernel::Module module, kernel::parse("lockstep.kernel 1\n" + std::string(body)));
  return runKernel(backend, module, buffers, groups);
}

void Conformance::SetUp() {
  static std::map<std::string, std::unique_ptr<Backend>> backends;
  auto found = backends.find(GetParam().name);
  if (found == backends.end()) found = backends.emplace(GetParam().name, GetParam().make()).first;
  backend_ = found->second.get();
  if (backend_ == nullptr) GTEST_SKIP() << "there is no such device here";
}

std::vector<Words> Conformance::run(std::string_view body, const std::vector<Words>& buffers, std::array<uint32_t, 3> groups) {
  Result<std::vector<Words>> results = runText(*backend_, body, buffers, groups);
  if (results.ok()) return *results;
  ADD_FAILURE() << toString(results.diagnostics());
  return std::vector<Words>(buffers.size(), Words(64));
}

std::vector<Words> Conformance::run(const kernel::Module& module, const std::vector<Words>& buffers, std::array<uint32_t, 3> groups,
                                    const Words& immediates) {
  Result<std::vector<Words>> results = runKernel(*backend_, module, buffers, groups, immediates);
  if (results.ok()) return *results;
  ADD_FAILURE() << toString(results.diagnostics());
  return buffers;
}

}  // namespace lockstep::conformance
