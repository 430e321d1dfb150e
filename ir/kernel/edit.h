// SPDX-License-Identifier: Apache-2.0
// What rewriting a module takes: values that stand for others, and copies of instructions.
#pragma once

#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// Which value each value is replaced by; a value that was not set stands for itself. Passes walk in the order of the text, where a
/// definition comes before its uses, so what `set` is given is replaced already and no chains arise.
class ValueMap {
 public:
  [[nodiscard]] ValueId operator()(ValueId value) const {
    return value.index() < to_.size() && to_[value.index()].valid() ? to_[value.index()] : value;
  }
  void set(ValueId from, ValueId to) {
    if (from.index() >= to_.size()) to_.resize(from.index() + 1);
    to_[from.index()] = to;
  }
  void rewrite(std::vector<ValueId>& operands) const {
    for (ValueId& operand : operands) operand = (*this)(operand);
  }

 private:
  std::vector<ValueId> to_;
};

/// A pure function of its operands that is defined for all of them: it may be computed twice, elsewhere or not at all.
bool isPure(Op op);

/// Appends an instruction to the module's arena, in no block yet. One with a type gets a result of this name.
InstructionId addInstruction(Module& module, Instruction instruction, std::string name = {});

/// Appends a copy of the instruction, and of the blocks that it owns, to the module's arenas. Operands go through `map`; each result is
/// mapped to its copy, so a second copy simply overwrites what the first has set.
InstructionId copyInstruction(Module& module, InstructionId id, ValueMap& map);
/// The same without the blocks: the copy has none.
InstructionId copyAlone(Module& module, InstructionId id, ValueMap& map);

}  // namespace lockstep::kernel
