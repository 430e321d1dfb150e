// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/inlined_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace lockstep::kernel {
namespace {

constexpr uint64_t kCountedMost = uint64_t(1) << 62u;  // so that the sum of two is a number

/// Of a variable; small ones become registers, however many calls there are.
uint64_t bytesOf(const Module& module, const Instruction& instruction) {
  constexpr uint32_t kSmall = 256;
  if (instruction.op != Op::Var) return 0;
  const uint32_t bytes = module.types.sizeOf(module.types[instruction.type].element);
  return bytes > kSmall ? bytes : 0;
}

InlinedSize sizeOf(const Module& module, BlockId block, const std::vector<InlinedSize>& callees) {
  InlinedSize size{.instructions = 0, .bytes = 0, .nesting = 1};
  const auto add = [&size](const InlinedSize& inner) {
    size.instructions = std::min(kCountedMost, size.instructions + inner.instructions);
    size.bytes = std::min(kCountedMost, size.bytes + inner.bytes);
    size.nesting = std::max(size.nesting, inner.nesting + 1);
  };
  for (const InstructionId id : module[block].instructions) {
    const Instruction& instruction = module[id];
    add({.instructions = 1, .bytes = bytesOf(module, instruction), .nesting = 0});
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
  const auto [instructions, local_bytes, nesting] = inlinedSize(module, entry);
  uint64_t bytes = local_bytes;
  for (const GlobalVariable& global : module.globals) {
    if (global.space == AddressSpace::Private) bytes = std::min(kCountedMost, bytes + module.types.sizeOf(global.type));
  }
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
  if (bytes > kMaxPrivateBytes) {
    return fail(code,
                fmt::format("kernel {}: entry point '{}' has {} bytes of private and local variables for each invocation; the limit is {}",
                            module.name, entry.name, bytes, kMaxPrivateBytes),
                {}, "keep large arrays in a buffer or in workgroup memory");
  }
  return Success{};
}

}  // namespace lockstep::kernel
