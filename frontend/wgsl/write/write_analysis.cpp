// SPDX-License-Identifier: Apache-2.0
// Which results are written in place of their use. The text is evaluated in the order of the module: a result without a name that is
// used once is written in its user's expression if nothing else is computed between the two; every other result becomes a `let`.
#include <algorithm>
#include <array>
#include <string_view>

#include "frontend/wgsl/write/writer.h"

namespace lockstep::wgsl {

using kernel::InstructionId;
using kernel::Op;
using kernel::OpGroup;

namespace {

/// Longer expressions are split, so that lines stay readable and the reader's nesting limit is never reached.
constexpr uint32_t kMaximumLength = 84, kMaximumDepth = 40;

/// Characters around the operands of an instruction: an operator, or a function's name and parentheses.
uint32_t ownLength(const kernel::Instruction& instruction) {
  if (instruction.op == Op::Load) return 0;
  const OpGroup group = kernel::info(instruction.op).group;
  const bool symbol = group == OpGroup::Arithmetic && instruction.op != Op::Select;
  return symbol || instruction.op == Op::Access || instruction.op == Op::Extract ? 3 : 10;
}

/// What a name counts as. One that a writer made up, v105, counts as a value without a name, so that a text that was read is split as
/// before.
uint32_t nameLength(std::string_view name) {
  const bool is_made_up = name.starts_with('v') && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return static_cast<uint32_t>(is_made_up ? 3 : std::max<size_t>(name.size(), 3));
}

bool hasCompoundForm(Op op) {
  constexpr std::array kOps{Op::Add, Op::Sub, Op::Mul, Op::MatMul, Op::Div, Op::Rem, Op::And, Op::Or, Op::Xor, Op::Shl, Op::Shr};
  return std::ranges::find(kOps, op) != kOps.end();
}

}  // namespace

bool Writer::isPure(Op op) {
  const OpGroup group = kernel::info(op).group;
  const bool tells_place = op == Op::SubgroupMatrixRow || op == Op::SubgroupMatrixColumn;
  return group == OpGroup::Arithmetic || group == OpGroup::Math || group == OpGroup::Composite || op == Op::Access ||
         op == Op::ArrayLength || tells_place;
}

/// Written like the constant that it becomes when the text is read. A subgroup matrix that is filled stays an instruction.
bool Writer::isConstantComposite(const kernel::Instruction& instruction) const {
  return instruction.op == Op::Construct && module_.types[instruction.type].kind != kernel::TypeKind::SubgroupMatrix &&
         instruction.result.valid() && module_[instruction.result].name.empty() &&
         std::ranges::all_of(instruction.operands, [&](kernel::ValueId id) { return isConstant(id); });
}

bool Writer::isComponentAccess(const kernel::Instruction& instruction) const {
  if (instruction.op != Op::Access) return false;
  kernel::TypeId part = module_.typeOf(instruction.operands[0]).element;
  for (size_t i = 1; i + 1 < instruction.operands.size(); ++i) part = partType(part, instruction.operands[i]);
  return module_.types[part].kind == kernel::TypeKind::Vector || module_.types[part].kind == kernel::TypeKind::SubgroupMatrix;
}

void Writer::countUses(kernel::BlockId block) {
  const auto& instructions = module_[block].instructions;
  for (uint32_t i = 0; i < instructions.size(); ++i) {
    const kernel::Instruction& instruction = module_[instructions[i]];
    Place& place = places_[instructions[i].index()];
    place.block = static_cast<uint32_t>(block.index());
    place.index = i;
    for (const kernel::ValueId operand : instruction.operands) {
      const kernel::Value& value = module_[operand];
      if (value.kind == kernel::ValueKind::Instruction) ++places_[value.index].uses;
    }
    for (const kernel::BlockId inner : instruction.blocks) countUses(inner);
  }
}

void Writer::analyze(kernel::BlockId block) {
  const auto& instructions = module_[block].instructions;
  for (int32_t at = static_cast<int32_t>(instructions.size()) - 1; at >= 0;) {
    const InstructionId id = instructions[static_cast<size_t>(at)];
    for (const kernel::BlockId inner : module_[id].blocks) analyze(inner);
    Claim claim{.at = at - 1, .inlined = {}};
    if (isFloating(id)) {
      at = claim.at;
      continue;
    }
    if (!claimCompound(id, claim)) {
      claim = {.at = at - 1, .inlined = {}};
      if (module_[id].op == Op::Store) floatTarget(id);
      // The place of a component is written at each of its uses, so that its operands have to be names.
      if (!isComponentAccess(module_[id])) claimOperands(id, 0, claim);
    }
    for (const InstructionId inlined : claim.inlined) places_[inlined.index()].inlined = true;
    at = claim.at;
  }
}

/// The instruction before the claimed ones; those that write nothing at their place are passed over.
const kernel::Instruction* Writer::next(uint32_t block, Claim& claim) const {
  const auto& instructions = module_.blocks[block].instructions;
  while (claim.at >= 0) {
    const kernel::Instruction& instruction = module_[instructions[static_cast<size_t>(claim.at)]];
    if (!isFloating(instructions[static_cast<size_t>(claim.at)]) && !isConstantComposite(instruction)) return &instruction;
    --claim.at;
  }
  return nullptr;
}

/// Takes the instructions right before `user` that compute operand `index` and those before it, last first; returns the length of the text.
uint32_t Writer::claimOperands(InstructionId user, uint32_t depth, Claim& claim) {
  const kernel::Instruction& instruction = module_[user];
  uint32_t length = ownLength(instruction);
  for (size_t i = instruction.operands.size(); i-- > 0;) length += claimOperand(user, i, depth, claim);
  return length;
}

uint32_t Writer::claimOperand(InstructionId user, size_t index, uint32_t depth, Claim& claim) {
  const kernel::Instruction& instruction = module_[user];
  const kernel::ValueId operand = instruction.operands[index];
  const kernel::Value& value = module_[operand];
  const uint32_t named = nameLength(value.name) + 2;
  if (value.kind == kernel::ValueKind::Instruction && isFloating(InstructionId(value.index))) {
    return claimOperands(InstructionId(value.index), depth + 1, claim);
  }
  if (value.kind == kernel::ValueKind::Constant) {
    // What WGSL has no literal for is read back as a bitcast of a variable, and is as long as that.
    const auto odd = odd_names_.find(value.bits);
    const bool is_odd = odd != odd_names_.end() && module_.types[value.type].is(kernel::Scalar::F32);
    return is_odd ? 10 + static_cast<uint32_t>(odd->second.size()) + 2 + 4 : 4;
  }
  if (value.kind != kernel::ValueKind::Instruction || depth >= kMaximumDepth) return named;
  const kernel::Instruction* before = next(places_[user.index()].block, claim);
  if (before == nullptr || before->result != operand || !mayInline(InstructionId(value.index), instruction)) return named;
  Claim inner{.at = claim.at - 1, .inlined = {}};
  const uint32_t length = claimOperands(InstructionId(value.index), depth + 1, inner);
  if (length > kMaximumLength) return named;
  claim.at = inner.at;
  claim.inlined.emplace_back(value.index);
  claim.inlined.insert(claim.inlined.end(), inner.inlined.begin(), inner.inlined.end());
  return length + 2;
}

/// An access computes nothing, so the target of a store is written there wherever the access stands. Its indices are not moved.
void Writer::floatTarget(InstructionId store) {
  const kernel::Value& target = module_[module_[store].operands[0]];
  if (target.kind != kernel::ValueKind::Instruction) return;
  Place& place = places_[target.index];
  const kernel::Instruction& access = module_.instructions[target.index];
  const bool unnamed = module_[access.result].name.empty() || isComponentAccess(access);
  place.floating = access.op == Op::Access && place.uses == 1 && unnamed && place.block == places_[store.index()].block;
}

bool Writer::mayInline(InstructionId id, const kernel::Instruction& user) const {
  const kernel::Instruction& instruction = module_[id];
  if (places_[id.index()].uses != 1) return false;
  // WGSL has no address of a vector component, so accesses to one have no name.
  if (!module_[instruction.result].name.empty() && !isComponentAccess(instruction)) return false;
  if (isPure(instruction.op) || instruction.op == Op::Load) return true;
  // What does more than compute stands in a statement of its own.
  const bool statement = user.op == Op::Store || user.op == Op::Return || (user.op == Op::Var && !user.operands.empty());
  return statement && instruction.op != Op::Var;
}

/// `place op= value`: the access, the load, the value and the store of one statement.
bool Writer::claimCompound(InstructionId id, Claim& claim) {
  const kernel::Instruction& store = module_[id];
  if (store.op != Op::Store || module_[store.operands[0]].kind != kernel::ValueKind::Instruction) return false;
  const InstructionId access(module_[store.operands[0]].index);
  const uint32_t block = places_[id.index()].block;
  const kernel::Instruction* operation = next(block, claim);
  const bool unnamed_access =
      module_[access].op == Op::Access && (module_[module_[access].result].name.empty() || isComponentAccess(module_[access]));
  if (!unnamed_access || places_[access.index()].uses != 2 || operation == nullptr || operation->result != store.operands[1]) return false;
  const InstructionId operation_id(module_[operation->result].index);
  const bool plain = hasCompoundForm(operation->op) && places_[operation_id.index()].uses == 1 && module_[operation->result].name.empty();
  if (!plain || isConstant(operation->operands[0])) return false;
  --claim.at;
  claimOperand(operation_id, 1, 0, claim);
  const kernel::Instruction* load = next(block, claim);
  const bool loads = load != nullptr && load->op == Op::Load && load->operands[0] == store.operands[0] &&
                     load->result == operation->operands[0] && module_[load->result].name.empty() &&
                     places_[module_[load->result].index].uses == 1;
  if (!loads) return false;
  --claim.at;
  const kernel::Instruction* place = next(block, claim);
  if (place == nullptr || place->result != store.operands[0]) return false;
  --claim.at;
  claimOperands(access, 0, claim);
  claim.inlined.push_back(access);
  for (const InstructionId part : {id, operation_id, InstructionId(module_[load->result].index)}) places_[part.index()].compound = true;
  return true;
}

}  // namespace lockstep::wgsl
