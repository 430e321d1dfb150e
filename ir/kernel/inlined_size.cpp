// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/inlined_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep::kernel {
namespace {

constexpr uint64_t kCountedMost = uint64_t(1) << 62u;  // so that the sum of two is a number

InlinedSize sizeOf(const Module& module, BlockId block, const std::vector<InlinedSize>& callees) {
  InlinedSize size{.instructions = 0, .nesting = 1};
  const auto add = [&size](const InlinedSize& inner) {
    size.instructions = std::min(kCountedMost, size.instructions + inner.instructions);
    size.nesting = std::max(size.nesting, inner.nesting + 1);
  };
  for (const InstructionId id : module[block].instructions) {
    const Instruction& instruction = module[id];
    add({.instructions = 1, .nesting = 0});
    if (instruction.op == Op::Call) add(callees[instruction.immediate]);
    for (const BlockId inner : instruction.blocks) add(sizeOf(module, inner, callees));
  }
  return size;
}

}  // namespace

InlinedSize inlinedSize(const Module& module, const Function& function) {
  std::vector<InlinedSize> sizes;  // callees stand before callers
  for (const Function& one : module.functions) {
    sizes.push_back(sizeOf(module, one.body, sizes));
    if (&one == &function) break;
  }
  return sizes.back();
}

Status checkInlinedSize(const Module& module, const Function& entry, const char* code) {
  const auto [instructions, nesting] = inlinedSize(module, entry);
  if (instructions > kMaxInlinedInstructions) {
    return fail(code,
                fmt::format("kernel {}: entry point '{}' has {}{} instructions once its calls are inlined; the limit is {}", module.name,
                            entry.name, instructions == kCountedMost ? "at least " : "", instructions, kMaxInlinedInstructions),
                {}, "call functions in a loop rather than many times in the text");
  }
  if (nesting > kMaxInlinedNesting) {
    return fail(code,
                fmt::format("kernel {}: entry point '{}' has blocks and calls {} deep; the limit is {}", module.name, entry.name, nesting,
                            kMaxInlinedNesting),
                {}, "make the chain of calls shorter");
  }
  return Success{};
}

}  // namespace lockstep::kernel
