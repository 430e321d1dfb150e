// SPDX-License-Identifier: Apache-2.0
// Kernels under the sanitizer. Only small ones, with small buffers: no promise says how long a large one takes.
#include <algorithm>
#include <cstring>

#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/isolate_entry.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/promises.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep::fuzz {
namespace {

constexpr uint64_t kMostBytes = 1u << 16, kLoopBudget = 20'000, kElements = 8;
constexpr size_t kMostInstructions = 2000, kMostEntries = 4;

/// A variable's bytes: small numbers; of an array without a size kElements.
std::optional<Bytes> bytesOf(const kernel::Module& module, const kernel::GlobalVariable& variable) {
  uint64_t size = module.types.sizeOf(variable.type);
  if (module.types.isRuntimeSized(variable.type)) {
    const kernel::Type& type = module.types[variable.type];
    const bool in_struct = type.kind == kernel::TypeKind::Struct;
    const kernel::TypeId array = in_struct ? type.members.back().type : variable.type;
    size = (in_struct ? type.members.back().offset : 0) + kElements * uint64_t{module.types.strideOf(array)};
  }
  if (size > kMostBytes) return std::nullopt;
  Bytes bytes((size + 15) / 16 * 16);
  for (uint32_t i = 0; i < bytes.size() / 4; ++i) {
    const uint32_t number = i % 5;
    std::memcpy(bytes.data() + 4 * size_t{i}, &number, sizeof number);
  }
  return bytes;
}

/// A run of an entry point; nothing for one that is too large.
std::optional<tools::KernelRun> runOf(const kernel::Module& module, const std::string& entry) {
  const Result<kernel::Module> alone = kernel::isolateEntry(module, entry);
  if (!alone.ok() || alone->instructions.size() > kMostInstructions) return std::nullopt;
  // What atomics give depends on the order of workgroups, which the sanitizer runs one by one.
  const bool atomics = std::ranges::any_of(
      alone->instructions, [](const kernel::Instruction& x) { return kernel::info(x.op).group == kernel::OpGroup::Atomic; });
  tools::KernelRun run{.module = module, .entry = entry, .groups = {atomics ? 1u : 2u, 1, 1}, .device = "reference"};
  for (const kernel::GlobalVariable& variable : alone->globals) {
    if (variable.space == kernel::AddressSpace::Immediate) run.immediate = "zeros";
    if (variable.space == kernel::AddressSpace::Private && alone->types.sizeOf(variable.type) > kMostBytes) return std::nullopt;
    if (!kernel::isBound(variable.space)) continue;
    std::optional<Bytes> bytes = bytesOf(*alone, variable);
    if (!bytes) return std::nullopt;
    run.bytes[{variable.group, variable.binding}] = *std::move(bytes);
  }
  return run;
}

/// Where there is one of these, a plain run may end with a fault, never end, or give something else. Stores out of bounds all go to the
/// last element.
bool leavesResultsOpen(const Finding& finding, uint32_t groups) {
  const std::string& code = finding.diagnostic.code;
  if (code == "memory.out_of_bounds") return groups > 1;
  return code.starts_with("race.") || code == "loop.endless" || code == "order.waits" || code == "barrier.divergent";
}

}  // namespace

bool sanitizeKernel(std::span<const std::byte> input) {
  const std::string text(textOf(input));
  const Result<kernel::Module> module = wgsl::read(text);
  if (!module.ok()) return false;
  size_t entries = 0;
  bool ran = false;
  for (const kernel::Function& function : module->functions) {
    if (!function.workgroup_size || ++entries > kMostEntries) continue;
    const std::optional<tools::KernelRun> plain = runOf(*module, function.name);
    if (!plain) continue;
    tools::KernelRun watched = *plain;
    watched.sanitize = SanitizeOptions{.checks = {.wraps = true}, .loop_budget = kLoopBudget};
    const Result<tools::KernelResult> result = tools::runKernel(std::move(watched));
    requireAnswer(result);
    if (!result.ok()) continue;
    ran = true;
    for (const Finding& finding : result->findings) {
      requireDiagnostic(finding.diagnostic);
      require(finding.count > 0, "a finding happened");
      require(!toString(finding).empty(), "a finding can be shown");
    }
    const auto isOpen = [&](const Finding& finding) { return leavesResultsOpen(finding, plain->groups[0]); };
    if (std::ranges::any_of(result->findings, isOpen)) continue;
    const Result<tools::KernelResult> expected = tools::runKernel(*plain);
    require(expected.ok(), "a kernel that the sanitizer runs to its end also runs without it");
    require(expected->bytes == result->bytes, "the sanitizer changes no result");
  }
  return ran;
}

}  // namespace lockstep::fuzz
