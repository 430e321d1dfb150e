// SPDX-License-Identifier: Apache-2.0
// What an index is for the first and for the last invocation and round of the loops around, in exact numbers that do not wrap.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "ir/kernel/value_ranges.h"

namespace lockstep::wgsl {

enum class Corner : uint8_t { First, Last };

/// Walks the functions of a module and says at each index what it is at the corners. A number is given only where it is certain that an
/// invocation gets there: ids and counters about which a condition around says more than the ranges know have none.
class IndexCorners {
 public:
  /// Called with an access or extract and the position of an index in it, while numbers hold for its place.
  using Visitor = std::function<void(const kernel::Instruction& access, size_t operand)>;
  IndexCorners(const kernel::Module& module, std::array<uint32_t, 3> groups);
  void walk(const Visitor& visitor);

  [[nodiscard]] std::optional<int64_t> at(kernel::ValueId value, Corner corner) const { return number(value, corner, kDepth); }
  /// The instruction that makes a value, or null.
  [[nodiscard]] const kernel::Instruction* definition(kernel::ValueId value) const;
  static constexpr int kDepth = 10;  ///< how deep an index is looked into

 private:
  /// An id's component or a loop's counter.
  using Leaf = std::pair<kernel::ValueId, uint32_t>;
  struct Limited {
    Leaf leaf;
    bool first = false, last = false;  ///< which corners a condition may exclude
  };

  void block(kernel::BlockId id, const Visitor& visitor);
  void control(const kernel::Instruction& x, const Visitor& visitor);
  void loop(const kernel::Instruction& x, const Visitor& visitor);
  [[nodiscard]] size_t exitsOf(const std::vector<kernel::BlockId>& blocks, bool inner) const;
  void assume(kernel::ValueId condition, bool holds);
  void limit(kernel::ValueId condition, bool holds, int depth);
  void limitLeaves(kernel::ValueId value, bool first, bool last, int depth);
  [[nodiscard]] std::optional<Leaf> leafOf(kernel::ValueId value) const;
  [[nodiscard]] bool isLimited(const Leaf& leaf, Corner corner) const;
  [[nodiscard]] std::optional<int64_t> number(kernel::ValueId value, Corner corner, int depth) const;
  [[nodiscard]] std::optional<int64_t> computed(kernel::ValueId value, Corner corner, int depth) const;
  /// What each round adds to a counter, where that is a positive constant.
  [[nodiscard]] std::optional<int64_t> stepOf(kernel::ValueId variable) const;
  [[nodiscard]] std::optional<int64_t> leafNumber(kernel::ValueId value, const Leaf& leaf, Corner corner, int depth) const;

  const kernel::Module& m_;
  kernel::ValueRanges ranges_;
  std::array<uint32_t, 3> groups_, size_{};
  std::map<kernel::ValueId, kernel::Builtin> builtins_;
  std::vector<kernel::ValueId> counters_;  ///< variables of the loops around that only their continuing blocks store
  std::vector<Limited> limited_;
  std::map<kernel::ValueId, size_t> stores_;           ///< of each local variable, how many
  std::map<kernel::ValueId, kernel::ValueId> stored_;  ///< what the last of them stores
  /// What is known at this place, by corner: operands that are used many times must not take exponential time.
  mutable std::array<std::map<kernel::ValueId, std::optional<int64_t>>, 2> numbers_;
};

}  // namespace lockstep::wgsl
