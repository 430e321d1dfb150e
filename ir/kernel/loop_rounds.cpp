// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/loop_rounds.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ir/kernel/hidden_rounds.h"
#include "ir/kernel/queries.h"
#include "ir/kernel/value_ranges.h"

namespace lockstep::kernel {
namespace {

uint64_t sum(uint64_t a, uint64_t b) { return std::min(kAnyRounds, a + b); }

uint64_t product(uint64_t a, uint64_t b) { return a != 0 && b > kAnyRounds / a ? kAnyRounds : a * b; }

class Counter {
 public:
  Counter(const Module& module, const std::vector<LoopRounds>& callees, uint64_t unrolled)
      : m_(module), callees_(callees), unrolled_(unrolled), ranges_(module) {}

  LoopRounds count(const Function& function) {
    ranges_.enter(function);
    const uint64_t most = block(function.body);
    return {.most = most, .unbounded = unbounded_};
  }

 private:
  uint64_t block(BlockId id) {
    const size_t outer = ranges_.mark();
    uint64_t rounds = 0;
    for (const InstructionId each : m_[id].instructions) {
      ranges_.visit(m_[each]);
      rounds = sum(rounds, instruction(each));
    }
    ranges_.undo(outer);
    return rounds;
  }

  uint64_t instruction(InstructionId id) {
    const Instruction& x = m_[id];
    if (x.op == Op::Call) {
      const LoopRounds& callee = callees_[x.immediate];
      if (callee.unbounded.valid()) note(callee.unbounded);
      return sum(callee.most, hiddenRounds(m_, x));
    }
    if (x.op == Op::Loop) return loop(id);
    uint64_t rounds = hiddenRounds(m_, x);
    for (size_t i = 0; i < x.blocks.size(); ++i) {
      const size_t before = ranges_.mark();
      if (x.op == Op::If) ranges_.assume(x.operands[0], i == 0);
      rounds = sum(rounds, block(x.blocks[i]));
      ranges_.undo(before);
      ranges_.forgetStores(x.blocks[i]);
    }
    for (const BlockId inner : x.blocks) ranges_.forgetStores(inner);
    // What made one arm jump away does not hold after the `if`; undone at the end of the block around it.
    for (size_t i = 0; x.op == Op::If && i < x.blocks.size(); ++i) {
      if (endsInJump(m_, x.blocks[i])) ranges_.assume(x.operands[0], i != 0);
    }
    return rounds;
  }

  uint64_t loop(InstructionId id) {
    const Instruction& x = m_[id];
    const std::optional<Rounds> rounds = ranges_.enterLoop(x);
    if (!rounds) note(id);
    uint64_t body = 0;
    for (const BlockId inner : x.blocks) {
      body = sum(body, block(inner));
      ranges_.forgetStores(inner);
    }
    for (const BlockId inner : x.blocks) ranges_.forgetStores(inner);
    if (!rounds) return kAnyRounds;
    if (unrolled_ > 0 && rounds->exact && (rounds->most <= 1 || product(rounds->most, size(x)) <= unrolled_))
      return product(rounds->most, body);
    return sum(product(rounds->most, sum(1, body)), 1);
  }

  /// Instructions within the loop.
  [[nodiscard]] uint64_t size(const Instruction& x) const {
    uint64_t count = 0;
    for (const BlockId inner : x.blocks) {
      for (const InstructionId id : m_[inner].instructions) count += 1 + size(m_[id]);
    }
    return count;
  }

  void note(InstructionId loop) {
    if (!unbounded_.valid()) unbounded_ = loop;
  }

  const Module& m_;
  const std::vector<LoopRounds>& callees_;
  const uint64_t unrolled_;
  ValueRanges ranges_;
  InstructionId unbounded_;
};

}  // namespace

LoopRounds loopRounds(const Module& module, const Function& entry, uint64_t unrolled) {
  std::vector<LoopRounds> counted;  // callees stand before callers
  for (const Function& function : module.functions) {
    counted.push_back(Counter(module, counted, unrolled).count(function));
    if (&function == &entry) break;
  }
  LoopRounds& rounds = counted.back();
  if (entry.workgroup_size) rounds.most = sum(rounds.most, hiddenRounds(module, entry));
  return rounds;
}

}  // namespace lockstep::kernel
