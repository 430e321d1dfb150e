// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/edit.h"

namespace lockstep::kernel {

bool isPure(Op op) {
  OpGroup group = info(op).group;
  return group == OpGroup::Arithmetic || group == OpGroup::Math || group == OpGroup::Composite;
}

InstructionId addInstruction(Module& module, Instruction instruction, std::string name) {
  const InstructionId made(module.instructions.size());
  if (module.types[instruction.type].kind != TypeKind::Void) {
    instruction.result = ValueId(module.values.size());
    module.values.push_back({.kind = ValueKind::Instruction,
                             .type = instruction.type,
                             .index = static_cast<uint32_t>(made.index()),
                             .elements = {},
                             .name = std::move(name)});
  }
  module.instructions.push_back(std::move(instruction));
  return made;
}

InstructionId copyAlone(Module& module, InstructionId id, ValueMap& map) {
  Instruction copy = module[id];
  map.rewrite(copy.operands);
  copy.blocks.clear();
  if (!copy.result.valid()) return addInstruction(module, std::move(copy));
  const ValueId old = copy.result;
  std::string name = module[old].name;
  const InstructionId made = addInstruction(module, std::move(copy), std::move(name));
  map.set(old, module[made].result);
  return made;
}

InstructionId copyInstruction(Module& module, InstructionId id, ValueMap& map) {
  const InstructionId made = copyAlone(module, id, map);
  std::vector<BlockId> blocks = module[id].blocks;
  for (BlockId& block : blocks) {
    const std::vector<InstructionId> from = module[block].instructions;
    block = BlockId(module.blocks.size());
    module.blocks.emplace_back();
    for (InstructionId inner : from) {
      InstructionId inner_copy = copyInstruction(module, inner, map);
      module.blocks[block.index()].instructions.push_back(inner_copy);
    }
  }
  module.instructions[made.index()].blocks = std::move(blocks);
  return made;
}

}  // namespace lockstep::kernel
