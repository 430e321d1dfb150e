// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/prove_bounds.h"

#include <algorithm>
#include <bit>

#include "passes/kernel/edit.h"

namespace lockstep::passes {
namespace {

using kernel::BlockId;
using kernel::Builtin;
using kernel::Instruction;
using kernel::InstructionId;
using kernel::Module;
using kernel::Op;
using kernel::Scalar;
using kernel::ValueId;

/// The values that a u32 can have, both ends included. 64 bits, so that a sum or product that wraps is seen.
struct Range {
  uint64_t low = 0, high = UINT32_MAX;
};
constexpr Range kAny{};

/// Indices are short sums of products; what is deeper is not looked at.
constexpr int kDepth = 8;

/// What lies in both; where nothing does, the place is not reached and any answer is right, as long as it is a range.
Range both(Range a, Range b) {
  Range out{std::max(a.low, b.low), std::min(a.high, b.high)};
  return out.low <= out.high ? out : a;
}

Range ifExact(uint64_t low, uint64_t high) { return high <= UINT32_MAX ? Range{low, high} : kAny; }

/// All bits up to the highest one of `value`.
uint64_t onesUpTo(uint64_t value) { return value == 0 ? 0 : std::bit_ceil(value + 1) - 1; }

/// The results of an operation for operands of these ranges.
struct Rule {
  Op op;
  Range (*range)(Range, Range);
};
constexpr Rule kRules[] = {
    {Op::Add, [](Range a, Range b) { return ifExact(a.low + b.low, a.high + b.high); }},
    {Op::Sub, [](Range a, Range b) { return a.low >= b.high ? Range{a.low - b.high, a.high - b.low} : kAny; }},
    {Op::Mul, [](Range a, Range b) { return ifExact(a.low * b.low, a.high * b.high); }},
    // x / 0 = x.
    {Op::Div, [](Range a, Range b) { return b.low == 0 ? Range{0, a.high} : Range{a.low / b.high, a.high / b.low}; }},
    // x % 0 = 0.
    {Op::Rem, [](Range a, Range b) { return a.high < b.low ? a : Range{0, b.high == 0 ? 0 : std::min(a.high, b.high - 1)}; }},
    {Op::Shr, [](Range a, Range b) { return b.high < 32 ? Range{a.low >> b.high, a.high >> b.low} : Range{0, a.high}; }},
    {Op::Shl, [](Range a, Range b) { return b.high < 32 ? ifExact(a.low << b.low, a.high << b.high) : kAny; }},
    {Op::And, [](Range a, Range b) { return Range{0, std::min(a.high, b.high)}; }},
    {Op::Or, [](Range a, Range b) { return Range{0, onesUpTo(std::max(a.high, b.high))}; }},
    {Op::Xor, [](Range a, Range b) { return Range{0, onesUpTo(std::max(a.high, b.high))}; }},
    {Op::Min, [](Range a, Range b) { return Range{std::min(a.low, b.low), std::min(a.high, b.high)}; }},
    {Op::Max, [](Range a, Range b) { return Range{std::max(a.low, b.low), std::max(a.high, b.high)}; }},
};

/// `a op b` told about the left side; the mirrored and the opposite comparison.
struct Comparison {
  Op op, mirrored, opposite;
};
constexpr Comparison kComparisons[] = {{Op::Lt, Op::Gt, Op::Ge}, {Op::Le, Op::Ge, Op::Gt}, {Op::Gt, Op::Lt, Op::Le},
                                       {Op::Ge, Op::Le, Op::Lt}, {Op::Eq, Op::Eq, Op::Ne}, {Op::Ne, Op::Ne, Op::Eq}};

class Prover {
 public:
  explicit Prover(Module module) : m_(std::move(module)), facts_(m_.values.size()), builtin_(m_.values.size(), Builtin::None) {}

  Module run() {
    for (const kernel::Function& function : m_.functions) {
      size_ = function.workgroup_size.value_or(std::array<uint32_t, 3>{});
      for (const kernel::Parameter& parameter : function.parameters) builtin_[parameter.value.index()] = parameter.builtin;
      block(function.body);
    }
    return std::move(m_);
  }

 private:
  void block(BlockId id) {
    size_t outer = log_.size();
    for (InstructionId each : m_[id].instructions) {
      Instruction& x = m_.instructions[each.index()];
      if (x.op == Op::Access) {
        x.in_bounds = x.in_bounds || isInside(x);
      } else if (x.op == Op::If) {
        for (bool holds : {true, false}) {
          size_t before = log_.size();
          assume(x.operands[0], holds, kDepth);
          block(x.blocks[holds ? 0 : 1]);
          undo(before);
        }
        // What made one arm jump away does not hold behind it.
        if (endsInJump(m_, x.blocks[0])) assume(x.operands[0], false, kDepth);
        if (endsInJump(m_, x.blocks[1])) assume(x.operands[0], true, kDepth);
      } else {
        for (BlockId inner : x.blocks) block(inner);
      }
    }
    undo(outer);
  }

  bool isInside(const Instruction& access) {
    kernel::TypeId part = m_.typeOf(access.operands[0]).element;
    for (size_t i = 1; i < access.operands.size(); ++i) {
      uint32_t count = m_.types.elementCount(part);
      bool is_struct = m_.types[part].kind == kernel::TypeKind::Struct;
      if (!is_struct && (count == 0 || rangeOf(access.operands[i], kDepth).high >= count)) return false;
      part = m_.types.elementOf(part, constantBits(m_, access.operands[i]).value_or(0));
    }
    return true;
  }

  [[nodiscard]] Range rangeOf(ValueId value, int depth) const {
    Range known = facts_[value.index()];
    if (auto bits = constantBits(m_, value)) return {*bits, *bits};
    if (!m_.typeOf(value).is(Scalar::U32) || depth == 0) return known;
    return both(computed(value, depth - 1), known);
  }

  [[nodiscard]] Range computed(ValueId value, int depth) const {
    if (builtin_[value.index()] == Builtin::LocalInvocationIndex) return {0, uint64_t{size_[0]} * size_[1] * size_[2] - 1};
    const Instruction* x = definition(m_, value);
    if (x == nullptr) return kAny;
    if (x->op == Op::Extract) {
      auto component = constantBits(m_, x->operands[1]);
      bool local = builtin_[x->operands[0].index()] == Builtin::LocalInvocationId;
      return local && component ? Range{0, uint64_t{size_[*component]} - 1} : kAny;
    }
    if (x->op == Op::Convert && m_.typeOf(x->operands[0]).is(Scalar::Bool)) return {0, 1};
    if (x->op == Op::Select) {
      Range a = rangeOf(x->operands[0], depth), b = rangeOf(x->operands[1], depth);
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& each) { return each.op == x->op; });
    return rule == std::end(kRules) ? kAny : rule->range(rangeOf(x->operands[0], depth), rangeOf(x->operands[1], depth));
  }

  /// Notes what a condition that holds (or does not) says about the values that it compares.
  void assume(ValueId condition, bool holds, int depth) {
    const Instruction* x = definition(m_, condition);
    if (x == nullptr || depth == 0) return;
    if (x->op == Op::Not) return assume(x->operands[0], !holds, depth - 1);
    if ((x->op == Op::And && holds) || (x->op == Op::Or && !holds)) {
      for (ValueId operand : x->operands) assume(operand, holds, depth - 1);
      return;
    }
    const auto* row = std::find_if(std::begin(kComparisons), std::end(kComparisons), [&](const Comparison& c) { return c.op == x->op; });
    if (row == std::end(kComparisons) || !m_.typeOf(x->operands[0]).is(Scalar::U32)) return;
    Op op = holds ? row->op : row->opposite;
    const auto* mirrored = std::find_if(std::begin(kComparisons), std::end(kComparisons), [&](const Comparison& c) { return c.op == op; });
    Range a = rangeOf(x->operands[0], kDepth), b = rangeOf(x->operands[1], kDepth);
    narrow(x->operands[0], op, b);
    narrow(x->operands[1], mirrored->mirrored, a);
  }

  /// `value op other` holds.
  void narrow(ValueId value, Op op, Range other) {
    Range fact;
    if (op == Op::Lt && other.high > 0) fact.high = other.high - 1;
    if (op == Op::Le || op == Op::Eq) fact.high = other.high;
    if (op == Op::Gt) fact.low = other.low + 1;
    if (op == Op::Ge || op == Op::Eq) fact.low = other.low;
    log_.push_back({value, facts_[value.index()]});
    facts_[value.index()] = both(facts_[value.index()], fact);
  }
  void undo(size_t size) {
    for (; log_.size() > size; log_.pop_back()) facts_[log_.back().value.index()] = log_.back().before;
  }

  struct Change {
    ValueId value;
    Range before;
  };
  Module m_;
  std::vector<Range> facts_;  // what conditions say about each value
  std::vector<Builtin> builtin_;
  std::vector<Change> log_;
  std::array<uint32_t, 3> size_{};
};

}  // namespace

Module proveBounds(Module module) { return Prover(std::move(module)).run(); }

}  // namespace lockstep::passes
