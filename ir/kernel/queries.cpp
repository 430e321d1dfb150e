// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/queries.h"

#include <algorithm>

namespace lockstep::kernel {

const Instruction* definition(const Module& module, ValueId value) {
  const Value& found = module[value];
  return found.kind == ValueKind::Instruction ? &module.instructions[found.index] : nullptr;
}

std::optional<uint32_t> constantBits(const Module& module, ValueId value) {
  const Value& found = module[value];
  const bool scalar = found.kind == ValueKind::Constant && module.types[found.type].kind == TypeKind::Scalar;
  return scalar ? std::optional(found.bits) : std::nullopt;
}

ValueId rootOf(const Module& module, ValueId pointer) {
  const Instruction* access = definition(module, pointer);
  return access != nullptr && access->op == Op::Access ? rootOf(module, access->operands[0]) : pointer;
}

bool isJump(Op op) { return op == Op::Break || op == Op::Continue || op == Op::Return; }

bool endsInJump(const Module& module, BlockId block) {
  const std::vector<InstructionId>& instructions = module[block].instructions;
  return !instructions.empty() && isJump(module[instructions.back()].op);
}

bool jumpsAway(const Module& module, BlockId block) {
  if (endsInJump(module, block)) return true;
  const std::vector<InstructionId>& instructions = module[block].instructions;
  if (instructions.empty() || module[instructions.back()].op != Op::If) return false;
  return std::ranges::all_of(module[instructions.back()].blocks, [&](BlockId arm) { return jumpsAway(module, arm); });
}

bool leavesLoop(const Module& module, BlockId block) {
  const std::vector<InstructionId>& body = module[block].instructions;
  if (body.empty() || module[body.back()].op != Op::Break) return false;
  return std::ranges::all_of(body, [&](InstructionId id) { return module[id].blocks.empty(); });
}

uint32_t elementsHeld(const Module& module, const Type& matrix) {
  const Function* entry = module.entryPoint();
  if (entry == nullptr || entry->subgroup_size == 0) return 0;
  return std::max<uint32_t>(uint32_t{matrix.rows} * matrix.columns / entry->subgroup_size, 1);
}

uint32_t componentsIn(const Type& element, const Type& matrix) {
  const bool packs = element.scalar == Scalar::U32 && matrix.scalar != Scalar::U32;
  return element.width() * (packs ? 4 / byteSize(matrix.scalar) : 1);
}

uint64_t workgroupBytes(const Module& module) {
  uint64_t bytes = 0;
  for (const GlobalVariable& global : module.globals) {
    if (global.space == AddressSpace::Workgroup) bytes += workgroupBytes(module.types.sizeOf(global.type));
  }
  return bytes;
}

}  // namespace lockstep::kernel
