// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/lint/index_corners.h"

#include <algorithm>

#include "ir/kernel/queries.h"

namespace lockstep::wgsl {

using kernel::BlockId;
using kernel::Builtin;
using kernel::Instruction;
using kernel::Module;
using kernel::Op;
using kernel::Range;
using kernel::ValueId;
using kernel::ValueKind;

namespace {

bool isInteger(const kernel::Type& type) { return type.is(kernel::Scalar::U32) || type.is(kernel::Scalar::I32); }

/// Behind more conditions nothing is known any more.
constexpr size_t kMostLimited = 200;

/// Comparisons that say that the left side is small, or that it is large.
bool isBelow(Op op, bool holds) { return holds ? op == Op::Lt || op == Op::Le : op == Op::Gt || op == Op::Ge; }
bool isAbove(Op op, bool holds) { return holds ? op == Op::Gt || op == Op::Ge : op == Op::Lt || op == Op::Le; }
bool isComparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Gt || op == Op::Ge || op == Op::Eq || op == Op::Ne; }

/// Whether a comparison of numbers in these ranges is sure to be other than `holds`.
bool isRuledOut(Op op, bool holds, kernel::Range a, kernel::Range b) {
  const bool below = a.high<b.low, above = a.low> b.high;
  const bool not_below = a.low >= b.high, not_above = a.high <= b.low;
  const bool same = a.low == a.high && a == b;
  if (op == Op::Lt) return holds ? not_below : below;
  if (op == Op::Le) return holds ? above : not_above;
  if (op == Op::Gt) return holds ? not_above : above;
  if (op == Op::Ge) return holds ? below : not_below;
  return (op == Op::Eq) == holds ? below || above : same;
}

/// Exact for operands that did not wrap; nothing where a wrapped operand would give another number.
std::optional<int64_t> combine(Op op, int64_t a, int64_t b) {
  constexpr int64_t kLarge = int64_t{1} << 31;
  int64_t out = 0;
  if (op == Op::Add) return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == Op::Sub) return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (op == Op::Mul) return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  if (a < 0 || b < 0 || a > UINT32_MAX || b > UINT32_MAX) return std::nullopt;
  if (op == Op::Div) return b == 0 ? a : a / b;
  if (op == Op::Rem) return b == 0 ? 0 : a % b;
  if (op == Op::And) return a & b;
  if (op == Op::Or) return a | b;
  if (op == Op::Min) return std::min(a, b);
  if (op == Op::Max) return std::max(a, b);
  if (op == Op::Shr && b < 32) return a >> b;
  if (op == Op::Shl && b < 32 && a < kLarge) return a << b;
  return std::nullopt;
}

}  // namespace

const Instruction* IndexCorners::definition(ValueId value) const { return kernel::definition(m_, value); }

IndexCorners::IndexCorners(const Module& module, std::array<uint32_t, 3> groups) : m_(module), ranges_(module), groups_(groups) {
  for (const Instruction& x : module.instructions) {
    if (x.op != Op::Store) continue;
    ++stores_[x.operands[0]];
    stored_[x.operands[0]] = x.operands[1];
  }
}

void IndexCorners::walk(const Visitor& visitor) {
  for (const kernel::Function& function : m_.functions) {
    size_ = function.workgroup_size.value_or(std::array<uint32_t, 3>{});
    builtins_.clear();
    counters_.clear();
    limited_.clear();
    for (const kernel::Parameter& parameter : function.parameters) {
      if (parameter.builtin != Builtin::None) builtins_[parameter.value] = parameter.builtin;
    }
    ranges_.enter(function);
    block(function.body, visitor);
  }
}

void IndexCorners::block(BlockId id, const Visitor& visitor) {
  const size_t facts = ranges_.mark(), limits = limited_.size();
  for (const auto each : m_[id].instructions) {
    const Instruction& x = m_[each];
    if (x.op == Op::Access || x.op == Op::Extract) {
      for (size_t k = 1; k < x.operands.size(); ++k) {
        if (m_[x.operands[k]].kind == ValueKind::Constant) continue;
        for (auto& known : numbers_) known.clear();
        visitor(x, k);
      }
    }
    ranges_.visit(x);
    control(x, visitor);
  }
  ranges_.undo(facts);
  limited_.resize(limits);
}

void IndexCorners::control(const Instruction& x, const Visitor& visitor) {
  if (x.op == Op::If) {
    for (const bool holds : {true, false}) {
      const size_t facts = ranges_.mark(), limits = limited_.size();
      assume(x.operands[0], holds);
      block(x.blocks[holds ? 0 : 1], visitor);
      ranges_.undo(facts);
      limited_.resize(limits);
      ranges_.forgetStores(x.blocks[holds ? 0 : 1]);
    }
    if (kernel::jumpsAway(m_, x.blocks[0])) assume(x.operands[0], false);
    if (kernel::jumpsAway(m_, x.blocks[1])) assume(x.operands[0], true);
    return;
  }
  if (x.op == Op::Loop) return loop(x, visitor);
  const size_t limits = limited_.size();
  if (!x.blocks.empty() && !x.operands.empty()) limitLeaves(x.operands[0], true, true, kDepth);
  for (const BlockId inner : x.blocks) {
    block(inner, visitor);
    ranges_.forgetStores(inner);
  }
  limited_.resize(limits);
}

void IndexCorners::loop(const Instruction& x, const Visitor& visitor) {
  const size_t counters = counters_.size();
  if (x.blocks.size() > 1) {
    for (const auto id : m_[x.blocks[1]].instructions) {
      const Instruction& store = m_[id];
      if (store.op != Op::Store || definition(store.operands[0]) == nullptr) continue;
      const ValueId variable = store.operands[0];
      if (stores_.at(variable) == 1) counters_.push_back(variable);
    }
  }
  ranges_.enterLoop(x);
  const size_t limits = limited_.size();
  if (exitsOf(x.blocks, false) > 1) {
    // It may be left before its last round.
    for (size_t k = counters; k < counters_.size(); ++k) limited_.push_back({.leaf = {counters_[k], 0}, .first = false, .last = true});
  }
  for (const BlockId inner : x.blocks) {
    block(inner, visitor);
    ranges_.forgetStores(inner);
  }
  for (const BlockId inner : x.blocks) ranges_.forgetStores(inner);
  limited_.resize(limits);
  counters_.resize(counters);
}

/// How many jumps leave a loop: of its blocks, or of those within them.
size_t IndexCorners::exitsOf(const std::vector<BlockId>& blocks, bool inner) const {
  size_t count = 0;
  for (const BlockId id : blocks) {
    for (const auto each : m_[id].instructions) {
      const Instruction& x = m_[each];
      count += x.op == Op::Return || (!inner && (x.op == Op::Break || x.op == Op::BreakIf));
      count += exitsOf(x.blocks, inner || x.op == Op::Loop || x.op == Op::Switch);
    }
  }
  return count;
}

void IndexCorners::assume(ValueId condition, bool holds) {
  ranges_.assume(condition, holds);
  limit(condition, holds, kDepth);
}

/// Notes which corners the condition may exclude, but for what the ranges know anyway.
void IndexCorners::limit(ValueId condition, bool holds, int depth) {
  const Instruction* x = definition(condition);
  if (x == nullptr || depth == 0) return limitLeaves(condition, true, true, depth);
  if (x->op == Op::Not) return limit(x->operands[0], !holds, depth - 1);
  if ((x->op == Op::And && holds) || (x->op == Op::Or && !holds)) {
    for (const ValueId operand : x->operands) limit(operand, holds, depth - 1);
    return;
  }
  if (!isComparison(x->op)) return limitLeaves(condition, true, true, depth);
  const bool integers = isInteger(m_.typeOf(x->operands[0]));
  if (integers && isRuledOut(x->op, holds, ranges_.rangeOf(x->operands[0]), ranges_.rangeOf(x->operands[1]))) {
    limited_.push_back({.leaf = {}, .first = true, .last = true});  // nobody gets here
    return;
  }
  for (const size_t side : {0u, 1u}) {
    const ValueId value = x->operands[side], other = x->operands[1 - side];
    const bool known = leafOf(value).has_value() && m_[other].kind == ValueKind::Constant;
    const bool below = side == 0 ? isBelow(x->op, holds) : isAbove(x->op, holds);
    const bool above = side == 0 ? isAbove(x->op, holds) : isBelow(x->op, holds);
    if (!known) limitLeaves(value, !below, !above, depth - 1);
  }
}

void IndexCorners::limitLeaves(ValueId value, bool first, bool last, int depth) {
  if (m_[value].kind == ValueKind::Constant || limited_.size() > kMostLimited) return;
  if (const auto leaf = leafOf(value)) {
    limited_.push_back({.leaf = *leaf, .first = first, .last = last});
    return;
  }
  // A difference that is below something has not wrapped.
  const Instruction* x = definition(value);
  const bool turns = x != nullptr && (x->op == Op::Sub || x->op == Op::Rem || x->op == Op::And || x->op == Op::Xor);
  const bool local =
      x != nullptr && x->op == Op::Load && definition(x->operands[0]) != nullptr && definition(x->operands[0])->op == Op::Var;
  if (depth == 0 || local || (x != nullptr && x->op == Op::Call)) {
    limited_.push_back({.leaf = {}, .first = true, .last = true});
    return;
  }
  if (x == nullptr) return;
  for (const ValueId operand : x->operands) limitLeaves(operand, first || turns, last || turns, depth - 1);
}

std::optional<IndexCorners::Leaf> IndexCorners::leafOf(ValueId value) const {
  if (builtins_.contains(value)) return Leaf{value, 0};
  const Instruction* x = definition(value);
  if (x == nullptr) return std::nullopt;
  if (x->op == Op::Extract && builtins_.contains(x->operands[0]) && m_[x->operands[1]].kind == ValueKind::Constant) {
    return Leaf{x->operands[0], m_[x->operands[1]].bits};
  }
  const bool counter = x->op == Op::Load && std::find(counters_.begin(), counters_.end(), x->operands[0]) != counters_.end();
  return counter ? std::optional(Leaf{x->operands[0], 0}) : std::nullopt;
}

bool IndexCorners::isLimited(const Leaf& leaf, Corner corner) const {
  return limited_.size() > kMostLimited || std::any_of(limited_.begin(), limited_.end(), [&](const Limited& each) {
           return (each.leaf == leaf || !each.leaf.first.valid()) && (corner == Corner::First ? each.first : each.last);
         });
}

std::optional<int64_t> IndexCorners::stepOf(ValueId variable) const {
  const Instruction* x = definition(stored_.at(variable));
  if (x == nullptr || x->op != Op::Add) return std::nullopt;
  for (const size_t side : {0u, 1u}) {
    const Instruction* load = definition(x->operands[side]);
    const auto step = kernel::constantBits(m_, x->operands[1 - side]);
    if (load != nullptr && load->op == Op::Load && load->operands[0] == variable && step && *step > 0 && *step <= INT32_MAX) return *step;
  }
  return std::nullopt;
}

std::optional<int64_t> IndexCorners::leafNumber(ValueId value, const Leaf& leaf, Corner corner, int depth) const {
  if (isLimited(leaf, corner)) return std::nullopt;
  const Range range = ranges_.rangeOf(value);
  const auto builtin = builtins_.find(leaf.first);
  if (builtin == builtins_.end()) {
    const Instruction& variable = *definition(leaf.first);
    const bool limits_known = range.high < (m_.typeOf(value).is(kernel::Scalar::I32) ? int64_t{INT32_MAX} : int64_t{UINT32_MAX});
    const std::optional<int64_t> start = variable.operands.empty() ? 0 : number(variable.operands[0], corner, depth);
    if (corner == Corner::Last) {
      // The last that the steps from the start on get to.
      const auto step = stepOf(leaf.first);
      if (!limits_known || !start || !step || *start < range.low || *start > range.high) return std::nullopt;
      return *start + (range.high - *start) / *step * *step;
    }
    return start && *start >= range.low && *start <= range.high ? start : std::nullopt;
  }
  const bool counts_groups = groups_[0] != 0;
  const uint32_t axis = leaf.second % 3;
  const auto is = [&](Builtin which) { return builtin->second == which; };
  std::optional<int64_t> last;
  if (is(Builtin::LocalInvocationId)) last = int64_t{size_[axis]} - 1;
  if (is(Builtin::LocalInvocationIndex)) last = int64_t{size_[0]} * size_[1] * size_[2] - 1;
  if (is(Builtin::WorkgroupId) && counts_groups) last = int64_t{groups_[axis]} - 1;
  if (is(Builtin::GlobalInvocationId) && counts_groups) last = int64_t{groups_[axis]} * size_[axis] - 1;
  // Sizes have no first number that is known.
  if (is(Builtin::NumWorkgroups) || is(Builtin::SubgroupSize) || is(Builtin::NumSubgroups)) return std::nullopt;
  if (corner == Corner::First) return range.low;
  return last ? std::optional(std::min(*last, range.high)) : std::nullopt;
}

std::optional<int64_t> IndexCorners::number(ValueId value, Corner corner, int depth) const {
  const kernel::Type& type = m_.typeOf(value);
  if (depth == 0 || !isInteger(type)) return std::nullopt;
  if (m_[value].kind == ValueKind::Constant) {
    const uint32_t bits = m_[value].bits;
    return type.is(kernel::Scalar::I32) ? int64_t{static_cast<int32_t>(bits)} : int64_t{bits};
  }
  auto& known = numbers_[static_cast<size_t>(corner)];
  if (const auto found = known.find(value); found != known.end()) return found->second;
  const std::optional<int64_t> result = computed(value, corner, depth);
  known[value] = result;
  return result;
}

std::optional<int64_t> IndexCorners::computed(ValueId value, Corner corner, int depth) const {
  if (const auto leaf = leafOf(value)) return leafNumber(value, *leaf, corner, depth - 1);
  const Instruction* x = definition(value);
  if (x == nullptr || x->operands.empty()) return std::nullopt;
  const std::optional<int64_t> a = number(x->operands[0], corner, depth - 1);
  if (x->op == Op::Convert || x->op == Op::Bitcast) return a && *a >= 0 && *a <= INT32_MAX ? a : std::nullopt;
  if (x->operands.size() != 2) return std::nullopt;
  // The last of a difference is not the difference of the lasts.
  const bool turns = corner == Corner::Last && x->op != Op::Add && x->op != Op::Mul && x->op != Op::Shl && x->op != Op::Min &&
                     x->op != Op::Max && m_[x->operands[1]].kind != ValueKind::Constant;
  if (turns) return std::nullopt;
  const std::optional<int64_t> b = number(x->operands[1], corner, depth - 1);
  if (x->op == Op::Mul && (a == 0 || b == 0)) return 0;
  return a && b ? combine(x->op, *a, *b) : std::nullopt;
}

}  // namespace lockstep::wgsl
