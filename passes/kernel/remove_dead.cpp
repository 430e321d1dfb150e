// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/remove_dead.h"

#include <algorithm>

#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::AddressSpace;
using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::OpGroup;
using kernel::TypeKind;
using kernel::ValueId;
using kernel::ValueKind;

class Remover {
 public:
  explicit Remover(Module module)
      : m_(std::move(module)),
        root_(m_.values.size()),
        stores_(m_.values.size()),
        owner_(m_.instructions.size()),
        jumps_(m_.instructions.size()),
        live_(m_.instructions.size()),
        read_(m_.values.size()) {}

  Module run() {
    for (const kernel::Function& function : m_.functions) {
      has_effect_.push_back(false);
      collect(function.body, {});
    }
    while (!work_.empty()) {
      InstructionId next = work_.back();
      work_.pop_back();
      need(m_[next]);
    }
    for (kernel::Block& block : m_.blocks) std::erase_if(block.instructions, [&](InstructionId id) { return !live_[id.index()]; });
    dropVariables();
    return canonical(m_, true);
  }

 private:
  /// Notes who owns each instruction, what each pointer points into and who stores there; marks what has an effect. A loop is needed when
  /// something in it is: one that computes nothing may be left out, whether it ends or not.
  void collect(BlockId block, InstructionId owner) {
    for (InstructionId id : m_[block].instructions) {
      const Instruction& x = m_[id];
      owner_[id.index()] = owner;
      if (x.op == Op::Access) root_[x.result.index()] = rootOf(x.operands[0]);
      if (leavesConstruct(x.op)) {
        jumps_[target(x.op, owner).index()].push_back(id);
      } else if (x.op == Op::Store && isLocal(rootOf(x.operands[0]))) {
        stores_[rootOf(x.operands[0]).index()].push_back(id);
        has_effect_.back() = has_effect_.back() || m_.typeOf(rootOf(x.operands[0])).space != AddressSpace::Function;
      } else if (hasEffect(x)) {
        mark(id);
        has_effect_.back() = has_effect_.back() || x.op != Op::Return;
      }
      for (BlockId inner : x.blocks) collect(inner, id);
    }
  }

  [[nodiscard]] ValueId rootOf(ValueId pointer) const { return root_[pointer.index()].valid() ? root_[pointer.index()] : pointer; }

  /// Memory that nobody sees outside this dispatch, known by its variable.
  [[nodiscard]] bool isLocal(ValueId root) const {
    AddressSpace space = m_.typeOf(root).space;
    return m_[root].kind != ValueKind::Parameter &&
           (space == AddressSpace::Function || space == AddressSpace::Private || space == AddressSpace::Workgroup);
  }

  static bool leavesConstruct(Op op) { return op == Op::Break || op == Op::BreakIf || op == Op::Continue; }

  /// The loop or switch that a jump inside of `owner` leaves or goes on with.
  [[nodiscard]] InstructionId target(Op op, InstructionId owner) const {
    while (m_[owner].op != Op::Loop && (m_[owner].op != Op::Switch || op == Op::Continue)) owner = owner_[owner.index()];
    return owner;
  }

  [[nodiscard]] bool hasEffect(const Instruction& x) const {
    OpGroup group = kernel::info(x.op).group;
    if (x.op == Op::Call) return has_effect_[x.immediate];
    return x.op == Op::Store || x.op == Op::SubgroupMatrixStore || x.op == Op::Return || group == OpGroup::Atomic ||
           group == OpGroup::Barrier || group == OpGroup::Debug;
  }

  void mark(InstructionId id) {
    if (live_[id.index()]) return;
    live_[id.index()] = true;
    work_.push_back(id);
  }

  void need(const Instruction& x) {
    InstructionId owner = owner_[static_cast<size_t>(&x - m_.instructions.data())];
    if (owner.valid()) mark(owner);
    for (InstructionId jump : jumps_[static_cast<size_t>(&x - m_.instructions.data())]) mark(jump);
    for (size_t i = 0; i < x.operands.size(); ++i) {
      const kernel::Value& operand = m_[x.operands[i]];
      if (operand.kind == ValueKind::Instruction) mark(InstructionId(operand.index));
      bool reads = m_.types[operand.type].kind == TypeKind::Pointer && x.op != Op::Access && x.op != Op::Store;
      if (!reads) continue;
      ValueId root = rootOf(x.operands[i]);
      if (read_[root.index()]) continue;
      read_[root.index()] = true;
      for (InstructionId store : stores_[root.index()]) mark(store);
    }
  }

  void dropVariables() {
    std::vector<bool> used(m_.values.size(), false);
    for (const kernel::Function& function : m_.functions) {
      forEachInstruction(m_, function.body, [&](InstructionId, const Instruction& x) {
        for (ValueId operand : x.operands) used[operand.index()] = true;
      });
    }
    std::erase_if(m_.globals, [&](const kernel::GlobalVariable& global) { return isLocal(global.value) && !used[global.value.index()]; });
  }

  Module m_;
  std::vector<ValueId> root_;                       // of each pointer made by access: the variable or parameter
  std::vector<std::vector<InstructionId>> stores_;  // of each local variable
  std::vector<InstructionId> owner_;                // of each instruction: the if, loop or switch around it
  std::vector<std::vector<InstructionId>> jumps_;   // of each loop and switch: what leaves it or goes on with it
  std::vector<bool> has_effect_;                    // of each function, callees first
  std::vector<bool> live_, read_;
  std::vector<InstructionId> work_;
};

}  // namespace

Module removeDead(Module module) { return Remover(std::move(module)).run(); }

}  // namespace lockstep::passes
