// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/forward_stores.h"

#include <algorithm>

#include "ir/kernel/builder.h"
#include "ir/kernel/queries.h"
#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::ValueId;

class Forwarder {
 public:
  explicit Forwarder(Module module) : b_(std::move(module)), m_(b_.module()), whole_(m_.values.size()), known_(m_.values.size()) {
    std::vector<bool> other_use(m_.values.size(), false);
    for (const kernel::Function& function : m_.functions) {
      forEachInstruction(m_, function.body, [&](InstructionId, const Instruction& x) {
        if (x.op == Op::Var) whole_[x.result.index()] = true;
        for (size_t i = 0; i < x.operands.size(); ++i) {
          bool plain = (x.op == Op::Load || x.op == Op::Store) && i == 0;
          if (!plain) other_use[x.operands[i].index()] = true;
        }
      });
    }
    for (size_t i = 0; i < whole_.size(); ++i) whole_[i] = whole_[i] && !other_use[i];
  }

  Module run() {
    const std::vector<kernel::Function> functions = m_.functions;
    for (const kernel::Function& function : functions) {
      block(function.body);
      forgetSince(0);
    }
    return b_.take();
  }

 private:
  void block(BlockId id) {
    std::vector<InstructionId> old = std::move(m_.blocks[id.index()].instructions), kept;
    for (InstructionId each : old) {
      map_.rewrite(m_.instructions[each.index()].operands);
      if (memory(each)) continue;
      // The arena may move while the blocks inside are walked.
      const Instruction control = m_[each];
      if (control.op == Op::Loop) {
        loop(control);
      } else if (!control.blocks.empty()) {
        branches(control);
      }
      kept.push_back(each);
    }
    m_.blocks[id.index()].instructions = std::move(kept);
  }

  /// Follows a declaration, load or store; true when it is not needed any more.
  bool memory(InstructionId id) {
    const Instruction& x = m_[id];
    if (x.op == Op::Var && whole_[x.result.index()]) {
      kernel::TypeId type = m_.types[x.type].element;
      setKnown(x.result, x.operands.empty() ? b_.zero(type) : x.operands[0]);
    } else if (x.op == Op::Load && isWhole(x.operands[0])) {
      ValueId value = known_[x.operands[0].index()];
      if (value.valid()) {
        map_.set(x.result, value);
        return true;
      }
      setKnown(x.operands[0], x.result);
    } else if (x.op == Op::Store && isWhole(x.operands[0])) {
      setKnown(x.operands[0], x.operands[1]);
    }
    return false;
  }

  void branches(const Instruction& control) {
    std::vector<ValueId> stored;
    for (BlockId inner : control.blocks) {
      size_t before = log_.size();
      block(inner);
      forgetSince(before);
      // An arm that jumps away never reaches what follows the `if`. Of a switch, a `break` does.
      if (control.op == Op::Switch || !endsInJump(m_, inner)) collectStores(inner, stored);
    }
    forget(stored);
  }

  void loop(const Instruction& control) {
    std::vector<ValueId> stored;
    for (BlockId inner : control.blocks) collectStores(inner, stored);
    forget(stored);
    size_t before = log_.size();
    block(control.blocks[0]);
    // Without a `continue`, what holds at the end of the body holds in `continuing`.
    if (holdsContinue(control.blocks[0])) forgetSince(before);
    block(control.blocks[1]);
    forgetSince(before);
  }

  [[nodiscard]] bool holdsContinue(BlockId block) const {
    const auto& instructions = m_[block].instructions;
    return std::any_of(instructions.begin(), instructions.end(), [&](InstructionId id) {
      const Instruction& x = m_[id];
      return x.op == Op::Continue ||
             (x.op != Op::Loop && std::any_of(x.blocks.begin(), x.blocks.end(), [&](BlockId inner) { return holdsContinue(inner); }));
    });
  }

  [[nodiscard]] bool isWhole(ValueId pointer) const { return pointer.index() < whole_.size() && whole_[pointer.index()]; }

  void collectStores(BlockId block, std::vector<ValueId>& into) const {
    forEachInstruction(m_, block, [&](InstructionId, const Instruction& x) {
      if (x.op == Op::Store && isWhole(x.operands[0])) into.push_back(x.operands[0]);
    });
  }

  void setKnown(ValueId variable, ValueId value) {
    log_.push_back({variable, known_[variable.index()]});
    known_[variable.index()] = value;
  }
  void forget(const std::vector<ValueId>& variables) {
    for (ValueId variable : variables) {
      if (known_[variable.index()].valid()) setKnown(variable, {});
    }
  }
  /// Back to what was known when the log had this size: what a block finds out ends with it.
  void forgetSince(size_t size) {
    for (; log_.size() > size; log_.pop_back()) known_[log_.back().variable.index()] = log_.back().before;
  }

  struct Change {
    ValueId variable, before;
  };
  kernel::Builder b_;
  Module& m_;
  ValueMap map_;
  std::vector<bool> whole_;     // variables that are only loaded and stored
  std::vector<ValueId> known_;  // what each of them holds now
  std::vector<Change> log_;
};

}  // namespace

Module forwardStores(Module module) { return Forwarder(std::move(module)).run(); }

}  // namespace lockstep::passes
