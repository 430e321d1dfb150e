// SPDX-License-Identifier: Apache-2.0
// A walk over a module that knows at each instruction which numbers its integers can be.
#pragma once

#include "ir/kernel/queries.h"
#include "ir/kernel/value_ranges.h"

namespace lockstep::wgsl {

class RangeWalk {
 public:
  explicit RangeWalk(const kernel::Module& module) : m_(module), ranges_(module) {}

  /// Calls `visit(instruction, ranges)` for each instruction, in the order of the text, with what holds before it.
  template <class Visit>
  void run(const Visit& visit) {
    for (const kernel::Function& function : m_.functions) {
      ranges_.enter(function);
      block(function.body, visit);
    }
  }

 private:
  template <class Visit>
  void block(kernel::BlockId id, const Visit& visit) {
    const size_t facts = ranges_.mark();
    for (const auto each : m_[id].instructions) {
      const kernel::Instruction& x = m_[each];
      visit(x, ranges_);
      ranges_.visit(x);
      control(x, visit);
    }
    ranges_.undo(facts);
  }

  template <class Visit>
  void control(const kernel::Instruction& x, const Visit& visit) {
    if (x.op == kernel::Op::If) {
      for (const bool holds : {true, false}) {
        const kernel::BlockId inner = x.blocks[holds ? 0 : 1];
        const size_t facts = ranges_.mark();
        ranges_.assume(x.operands[0], holds);
        block(inner, visit);
        ranges_.undo(facts);
        ranges_.forgetStores(inner);
      }
      if (kernel::jumpsAway(m_, x.blocks[0])) ranges_.assume(x.operands[0], false);
      if (kernel::jumpsAway(m_, x.blocks[1])) ranges_.assume(x.operands[0], true);
      return;
    }
    if (x.op == kernel::Op::Loop) ranges_.enterLoop(x);
    for (const kernel::BlockId inner : x.blocks) {
      block(inner, visit);
      ranges_.forgetStores(inner);
    }
    if (x.op != kernel::Op::Loop) return;
    for (const kernel::BlockId inner : x.blocks) ranges_.forgetStores(inner);
  }

  const kernel::Module& m_;
  kernel::ValueRanges ranges_;
};

}  // namespace lockstep::wgsl
