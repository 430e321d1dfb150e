// SPDX-License-Identifier: Apache-2.0
// Which numbers the integers of a kernel can be at the place that a walk over it has reached: from constants, built-in values, arithmetic,
// the conditions around, and what was stored into local variables.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// The numbers from `low` to `high`, both included; 64 bits, so that a sum or product that wraps is seen.
struct Range {
  int64_t low = 0, high = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

/// How often a counted loop runs its body.
struct Rounds {
  uint64_t most = 0;
  bool exact = false;  ///< the counter starts at one known number
};

/// Whoever walks the instructions of a function in the order of the text calls enter() for the function, visit() for each instruction,
/// enterLoop() before the blocks of a loop, and forgetStores() after each block. Facts of assume() hold until undo().
class ValueRanges {
 public:
  /// The module may grow afterwards.
  explicit ValueRanges(const Module& module);

  void enter(const Function& function);
  /// Takes note of loads and stores of local variables and of components of vectors.
  void visit(const Instruction& instruction);
  /// What holds in every round of the loop: variables that it stores are unknown, but for counters whose steps do not wrap. Returns a bound
  /// of the rounds where a counter gives one: the first control flow of the body leaves the loop unless the counter is on the near side of
  /// a bound, and `continuing` moves the counter by a constant towards it.
  std::optional<Rounds> enterLoop(const Instruction& loop);
  /// The variables that are stored inside of it have unknown values now.
  void forgetStores(BlockId block);
  /// Notes what a condition that holds (or does not) says about the values that it compares.
  void assume(ValueId condition, bool holds);
  [[nodiscard]] size_t mark() const { return log_.size(); }
  void undo(size_t mark);

  /// Of an integer scalar; where nothing is known, the range of its type.
  [[nodiscard]] Range rangeOf(ValueId value) const;
  /// Whether a condition says that the index is below the length of the runtime-sized array that this pointer leads to.
  [[nodiscard]] bool isBelowLength(ValueId index, ValueId array) const;

 private:
  /// What to put back; an invalid value stands for an entry of below_length_.
  struct Change {
    ValueId value;
    Range before;
  };
  [[nodiscard]] const Instruction* definition(ValueId value) const;
  [[nodiscard]] Range rangeOf(ValueId value, int depth) const;
  [[nodiscard]] Range computed(ValueId value, int depth) const;
  [[nodiscard]] Range limits(ValueId value) const;
  [[nodiscard]] ValueId nameOf(ValueId value) const;
  [[nodiscard]] bool isTracked(ValueId pointer) const;
  void collectStores(BlockId block, std::map<ValueId, uint32_t>& counts) const;
  void assume(ValueId condition, bool holds, int depth);
  void narrow(ValueId value, Op op, ValueId other);
  [[nodiscard]] bool isDirectlyIn(const Instruction& loop, uint32_t instruction) const;
  std::optional<Rounds> keepCounter(const Instruction& loop, ValueId variable, Range before);

  const Module& m_;
  std::vector<bool> tracked_;           ///< local integers that are only loaded and stored
  std::map<ValueId, ValueId> current_;  ///< a tracked variable -> the value that it holds
  std::map<ValueId, Range> counters_;   ///< a tracked variable that was not loaded yet -> what it holds, in every round
  std::map<ValueId, Range> first_;      ///< a value loaded from such a variable
  /// A value -> an earlier one that is the same number: facts belong to the earliest.
  std::map<ValueId, ValueId> names_;
  std::map<std::pair<ValueId, uint32_t>, ValueId> components_;  ///< of vectors: the first value that is this component
  std::map<ValueId, Range> facts_;
  std::vector<std::pair<ValueId, ValueId>> below_length_;  ///< a value, and the variable with the array
  std::map<ValueId, Builtin> builtins_;
  std::array<uint32_t, 3> size_{};
  std::vector<Change> log_;
};

}  // namespace lockstep::kernel
