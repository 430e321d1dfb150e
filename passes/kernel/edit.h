// SPDX-License-Identifier: Apache-2.0
// What the kernel passes share: values that stand for others, and copies of instructions.
#pragma once

#include <vector>

#include "ir/kernel/module.h"
#include "ir/kernel/queries.h"

namespace lockstep::passes {

/// Which value each value is replaced by; a value that was not set stands for itself. Passes walk in the order of the text, where a
/// definition comes before its uses, so what `set` is given is replaced already and no chains arise.
class ValueMap {
 public:
  [[nodiscard]] kernel::ValueId operator()(kernel::ValueId value) const {
    return value.index() < to_.size() && to_[value.index()].valid() ? to_[value.index()] : value;
  }
  void set(kernel::ValueId from, kernel::ValueId to) {
    if (from.index() >= to_.size()) to_.resize(from.index() + 1);
    to_[from.index()] = to;
  }
  void rewrite(std::vector<kernel::ValueId>& operands) const {
    for (kernel::ValueId& operand : operands) operand = (*this)(operand);
  }

 private:
  std::vector<kernel::ValueId> to_;
};

/// A pure function of its operands that is defined for all of them: it may be computed twice, elsewhere or not at all.
bool isPure(kernel::Op op);

/// Appends a copy of the instruction, and of the blocks that it owns, to the module's arenas. Operands go through `map`; each result is
/// mapped to its copy, so a second copy simply overwrites what the first has set.
kernel::InstructionId copyInstruction(kernel::Module& module, kernel::InstructionId id, ValueMap& map);

using kernel::constantBits;
using kernel::definition;
using kernel::forEachInstruction;

}  // namespace lockstep::passes
