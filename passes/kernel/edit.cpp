// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/edit.h"

namespace lockstep::passes {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::OpGroup;
using kernel::ValueId;

bool isPure(Op op) {
  OpGroup group = kernel::info(op).group;
  return group == OpGroup::Arithmetic || group == OpGroup::Math || group == OpGroup::Composite;
}

InstructionId copyInstruction(Module& module, InstructionId id, ValueMap& map) {
  Instruction copy = module[id];
  map.rewrite(copy.operands);
  InstructionId made(module.instructions.size());
  if (copy.result.valid()) {
    kernel::Value value = module[copy.result];
    value.index = static_cast<uint32_t>(made.index());
    ValueId result(module.values.size());
    module.values.push_back(std::move(value));
    map.set(copy.result, result);
    copy.result = result;
  }
  module.instructions.push_back(copy);
  for (BlockId& block : copy.blocks) {
    const std::vector<InstructionId> from = module[block].instructions;
    block = BlockId(module.blocks.size());
    module.blocks.emplace_back();
    for (InstructionId inner : from) {
      InstructionId inner_copy = copyInstruction(module, inner, map);
      module.blocks[block.index()].instructions.push_back(inner_copy);
    }
  }
  module.instructions[made.index()].blocks = std::move(copy.blocks);
  return made;
}

}  // namespace lockstep::passes
