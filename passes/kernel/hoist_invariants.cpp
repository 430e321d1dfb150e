// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/hoist_invariants.h"

#include <algorithm>

#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::ValueId;

class Hoister {
 public:
  explicit Hoister(Module module) : m_(std::move(module)), level_(m_.values.size()) {}

  Module run() {
    for (const kernel::Function& function : m_.functions) block(function.body, 0, nullptr);
    return std::move(m_);
  }

 private:
  /// `level` counts the loops around. `front` takes what moves in front of the loop that the block is the body or continuing block of.
  void block(BlockId id, uint32_t level, std::vector<InstructionId>* front) {
    std::vector<InstructionId> old = std::move(m_.blocks[id.index()].instructions), kept;
    auto place = [&](InstructionId each) {
      bool moves = front != nullptr && isInvariant(m_[each], level);
      if (m_[each].result.valid()) level_[m_[each].result.index()] = moves ? level - 1 : level;
      (moves ? *front : kept).push_back(each);
    };
    for (InstructionId each : old) {
      const Instruction& instruction = m_[each];
      if (instruction.op == Op::Loop) {
        std::vector<InstructionId> before;
        for (BlockId inner : instruction.blocks) block(inner, level + 1, &before);
        for (InstructionId moved : before) place(moved);
      } else {
        for (BlockId inner : instruction.blocks) block(inner, level, nullptr);
      }
      place(each);
    }
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  [[nodiscard]] bool isInvariant(const Instruction& x, uint32_t level) const {
    return isPure(x.op) &&
           std::all_of(x.operands.begin(), x.operands.end(), [&](ValueId operand) { return level_[operand.index()] < level; });
  }

  Module m_;
  std::vector<uint32_t> level_;  // of each value: the loops around its definition
};

}  // namespace

Module hoistInvariants(Module module) { return Hoister(std::move(module)).run(); }

}  // namespace lockstep::passes
