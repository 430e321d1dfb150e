// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/inlined_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep::kernel {
namespace {

constexpr uint64_t kCountedMost = uint64_t(1) << 63u;

uint64_t sizeOf(const Module& module, BlockId block, const std::vector<uint64_t>& callees) {
  uint64_t size = 0;
  const auto add = [&size](uint64_t more) { size = std::min(kCountedMost, size + more); };
  for (const InstructionId id : module[block].instructions) {
    const Instruction& instruction = module[id];
    add(1);
    if (instruction.op == Op::Call) add(callees[instruction.immediate]);
    for (const BlockId inner : instruction.blocks) add(sizeOf(module, inner, callees));
  }
  return size;
}

}  // namespace

uint64_t inlinedSize(const Module& module, const Function& function) {
  std::vector<uint64_t> sizes;  // callees stand before callers
  for (const Function& one : module.functions) {
    sizes.push_back(sizeOf(module, one.body, sizes));
    if (&one == &function) break;
  }
  return sizes.back();
}

Status checkInlinedSize(const Module& module, const Function& entry, const char* code) {
  const uint64_t size = inlinedSize(module, entry);
  if (size <= kMaxInlinedInstructions) return Success{};
  return fail(code,
              fmt::format("kernel {}: entry point '{}' has {}{} instructions once its calls are inlined; the limit is {}", module.name,
                          entry.name, size == kCountedMost ? "at least " : "", size, kMaxInlinedInstructions),
              {}, "call functions in a loop rather than many times in the text");
}

}  // namespace lockstep::kernel
