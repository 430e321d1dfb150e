// SPDX-License-Identifier: Apache-2.0
// Which results are written in place of their use. Named ones become `let`s; the others are inlined when they are used once in the
// block that computes them and nothing with an effect stands between a read and the place of its use.
#include <algorithm>

#include "frontend/wgsl/writer.h"

namespace lockstep::wgsl {

using kernel::Op;
using kernel::OpGroup;

bool Writer::isPure(Op op) {
  const OpGroup group = kernel::info(op).group;
  return group == OpGroup::Arithmetic || group == OpGroup::Math || group == OpGroup::Composite || op == Op::Access || op == Op::ArrayLength;
}

void Writer::analyze(kernel::BlockId block) {
  const auto& instructions = module_[block].instructions;
  std::vector<uint32_t>& effects = effects_[block.index()];
  effects.assign(instructions.size() + 1, 0);
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const kernel::Instruction& instruction = module_[instructions[i]];
    Place& place = places_[instructions[i].index()];
    place.block = static_cast<uint32_t>(block.index());
    place.index = i;
    for (const kernel::ValueId operand : instruction.operands) {
      const kernel::Value& value = module_[operand];
      if (value.kind != kernel::ValueKind::Instruction) continue;
      ++places_[value.index].uses;
      places_[value.index].user = instructions[i];
    }
    const bool has_effect = !isPure(instruction.op) && instruction.op != Op::Load && instruction.op != Op::Var;
    effects[i + 1] = effects[i] + (has_effect ? 1 : 0);
    for (const kernel::BlockId inner : instruction.blocks) analyze(inner);
  }
}

/// The text of an access may be repeated, so its operands must be names when it is used more than once.
void Writer::analyzeSharing(const kernel::Function& function) {
  std::vector<kernel::BlockId> blocks{function.body};
  std::vector<kernel::InstructionId> order;
  while (!blocks.empty()) {
    const kernel::BlockId block = blocks.back();
    blocks.pop_back();
    for (const kernel::InstructionId id : module_[block].instructions) {
      order.push_back(id);
      blocks.insert(blocks.end(), module_[id].blocks.begin(), module_[id].blocks.end());
    }
  }
  // An access of a shared access is shared; operands come before their users, so one pass over ids in reverse order of definition
  // would do, but blocks are visited out of order here. Chains of accesses are short: repeat until nothing changes.
  for (bool changed = true; changed;) {
    changed = false;
    for (const kernel::InstructionId id : order) {
      const kernel::Instruction& instruction = module_[id];
      const Place& place = places_[id.index()];
      const bool elsewhere = place.uses == 1 && places_[place.user.index()].block != place.block;
      if (instruction.op != Op::Access || (place.uses <= 1 && !elsewhere && !place.shared_operand)) continue;
      for (const kernel::ValueId operand : instruction.operands) {
        const kernel::Value& value = module_[operand];
        if (value.kind != kernel::ValueKind::Instruction || places_[value.index].shared_operand) continue;
        places_[value.index].shared_operand = true;
        changed = true;
      }
    }
  }
}

bool Writer::isComponentAccess(const kernel::Instruction& instruction) const {
  if (instruction.op != Op::Access) return false;
  kernel::TypeId part = module_.typeOf(instruction.operands[0]).element;
  for (size_t i = 1; i + 1 < instruction.operands.size(); ++i) part = partType(part, instruction.operands[i]);
  return module_.types[part].kind == kernel::TypeKind::Vector;
}

kernel::InstructionId Writer::evaluationPlace(kernel::InstructionId id) const {
  kernel::InstructionId at = places_[id.index()].user;
  while (true) {
    const kernel::Instruction& user = module_[at];
    const Place& place = places_[at.index()];
    const bool passes_on = isPure(user.op) && place.uses == 1 && !place.shared_operand &&
                           places_[place.user.index()].block == place.block &&
                           (module_[user.result].name.empty() || isComponentAccess(user));
    if (!passes_on) return at;
    at = place.user;
  }
}

bool Writer::canInline(kernel::InstructionId id) const {
  const kernel::Instruction& instruction = module_[id];
  const Place& place = places_[id.index()];
  // WGSL has no address of a vector component, so accesses to one have no name.
  if (instruction.op == Op::Access) return module_[instruction.result].name.empty() || isComponentAccess(instruction);
  // Written like the constant that it becomes when the text is read.
  const bool constant =
      instruction.op == Op::Construct && module_[instruction.result].name.empty() &&
      std::all_of(instruction.operands.begin(), instruction.operands.end(), [&](kernel::ValueId id) { return isConstant(id); });
  if (constant) return true;
  if (place.uses != 1 || place.shared_operand || !module_[instruction.result].name.empty()) return false;
  const Place& user = places_[place.user.index()];
  if (user.block != place.block) return false;
  if (isPure(instruction.op)) return true;
  if (instruction.op != Op::Load) return false;
  const Place& evaluation = places_[evaluationPlace(id).index()];
  const auto& effects = effects_[place.block];
  return evaluation.block == place.block && effects[evaluation.index] == effects[place.index];
}

}  // namespace lockstep::wgsl
