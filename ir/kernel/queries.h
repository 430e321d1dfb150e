// SPDX-License-Identifier: Apache-2.0
// Questions about a kernel that validators, passes, lints and backends all ask.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// The instruction that defines a value; null for constants, variables and parameters.
const Instruction* definition(const Module& module, ValueId value);

/// The bits of a scalar constant.
std::optional<uint32_t> constantBits(const Module& module, ValueId value);

/// The variable or parameter that a pointer goes into.
ValueId rootOf(const Module& module, ValueId pointer);

/// Calls `visit(id, instruction)` for every instruction of a block and of the blocks inside, in the order of the text.
template <class Visit>
void forEachInstruction(const Module& module, BlockId block, const Visit& visit) {
  for (const InstructionId id : module[block].instructions) {
    visit(id, module[id]);
    for (const BlockId inner : module[id].blocks) forEachInstruction(module, inner, visit);
  }
}

/// Break, continue or return: nothing follows it in its block.
bool isJump(Op op);
/// Whether the last instruction of the block is a jump, so that control never reaches what follows the block.
bool endsInJump(const Module& module, BlockId block);
/// The same, or an `if` of which both arms jump.
bool jumpsAway(const Module& module, BlockId block);
/// Whether every way through the block ends in its final `break`: what has blocks of its own might `continue` instead.
bool leavesLoop(const Module& module, BlockId block);

/// Elements of a subgroup matrix that an invocation holds; 0 where the entry point does not state the size of a subgroup.
uint32_t elementsHeld(const Module& module, const Type& matrix);

/// Components of such a matrix in an element of an array: as many as the vector has, or what fits into its u32s.
uint32_t componentsIn(const Type& element, const Type& matrix);

/// Bytes that devices count for a variable of `bytes` in workgroup memory: each begins at a multiple of 16.
constexpr uint64_t workgroupBytes(uint64_t bytes) { return (bytes + 15) / 16 * 16; }
/// The same, of all variables that a module has there.
uint64_t workgroupBytes(const Module& module);

}  // namespace lockstep::kernel
