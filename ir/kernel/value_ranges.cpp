// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/value_ranges.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "ir/kernel/queries.h"

namespace lockstep::kernel {
namespace {

constexpr Range kU32{0, UINT32_MAX}, kI32{INT32_MIN, INT32_MAX};

/// Indices are short sums of products; what is deeper is not looked at.
constexpr int kDepth = 8;

/// What lies in both; where nothing does, the place is not reached and any answer is right, as long as it is a range.
Range both(Range a, Range b) {
  const Range out{std::max(a.low, b.low), std::min(a.high, b.high)};
  return out.low <= out.high ? out : a;
}

bool contains(Range outer, Range inner) { return outer.low <= inner.low && inner.high <= outer.high; }

/// All bits up to the highest one of `value`.
int64_t onesUpTo(int64_t value) { return value == 0 ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value) + 1) - 1); }

/// The results of an operation for operands of these ranges, before they wrap; nothing where it is not known.
using Rule = std::optional<Range> (*)(Range, Range);

std::optional<Range> product(Range a, Range b) {
  if (a.low < 0 || b.low < 0 || (b.high != 0 && a.high > INT64_MAX / b.high)) return std::nullopt;
  return Range{a.low * b.low, a.high * b.high};
}

std::optional<Range> shiftLeft(Range a, Range b) {
  if (a.low < 0 || b.high >= 32) return std::nullopt;
  return Range{a.low << b.low, a.high << b.high};
}

std::optional<Range> shiftRight(Range a, Range b) {
  if (a.low < 0) return std::nullopt;
  return b.high < 32 ? Range{a.low >> b.high, a.high >> b.low} : Range{0, a.high};
}

// x / 0 = x.
std::optional<Range> quotient(Range a, Range b) {
  if (a.low < 0 || b.low < 0) return std::nullopt;
  return b.low == 0 ? Range{0, a.high} : Range{a.low / b.high, a.high / b.low};
}

// x % 0 = 0.
std::optional<Range> remainder(Range a, Range b) {
  if (b.low < 0) return std::nullopt;
  if (a.low >= 0 && a.high < b.low) return a;
  const int64_t most = b.high == 0 ? 0 : b.high - 1;
  return Range{a.low < 0 ? std::max(a.low, -most) : 0, std::clamp<int64_t>(a.high, 0, most)};
}

// A side that is not negative bounds the result.
std::optional<Range> commonBits(Range a, Range b) {
  if (a.low < 0 && b.low < 0) return std::nullopt;
  if (a.low < 0) return Range{0, b.high};
  return Range{0, b.low < 0 ? a.high : std::min(a.high, b.high)};
}

std::optional<Range> anyBits(Range a, Range b) {
  if (a.low < 0 || b.low < 0) return std::nullopt;
  return Range{0, onesUpTo(std::max(a.high, b.high))};
}

struct Row {
  Op op;
  Rule rule;
};
constexpr Row kRules[] = {
    {Op::Add, [](Range a, Range b) { return std::optional(Range{a.low + b.low, a.high + b.high}); }},
    {Op::Sub, [](Range a, Range b) { return std::optional(Range{a.low - b.high, a.high - b.low}); }},
    {Op::Mul, product},
    {Op::Div, quotient},
    {Op::Rem, remainder},
    {Op::Shr, shiftRight},
    {Op::Shl, shiftLeft},
    {Op::And, commonBits},
    {Op::Or, anyBits},
    {Op::Xor, anyBits},
    {Op::Min, [](Range a, Range b) { return std::optional(Range{std::min(a.low, b.low), std::min(a.high, b.high)}); }},
    {Op::Max, [](Range a, Range b) { return std::optional(Range{std::max(a.low, b.low), std::max(a.high, b.high)}); }},
};

/// `a op b` told about the left side; the mirrored and the opposite comparison.
struct Comparison {
  Op op, mirrored, opposite;
};
constexpr Comparison kComparisons[] = {{Op::Lt, Op::Gt, Op::Ge}, {Op::Le, Op::Ge, Op::Gt}, {Op::Gt, Op::Lt, Op::Le},
                                       {Op::Ge, Op::Le, Op::Lt}, {Op::Eq, Op::Eq, Op::Ne}, {Op::Ne, Op::Ne, Op::Eq}};
const Comparison* comparison(Op op) {
  const auto* row = std::find_if(std::begin(kComparisons), std::end(kComparisons), [&](const Comparison& c) { return c.op == op; });
  return row == std::end(kComparisons) ? nullptr : row;
}

bool isIndex(const Type& type) { return type.is(Scalar::U32) || type.is(Scalar::I32); }

std::optional<int64_t> constantOf(const Module& module, ValueId value) {
  const Value& found = module[value];
  const Type& type = module.types[found.type];
  if (found.kind != ValueKind::Constant || !isIndex(type)) return std::nullopt;
  return type.is(Scalar::I32) ? int64_t{static_cast<int32_t>(found.bits)} : int64_t{found.bits};
}

/// The module-scope variable that a pointer leads into; invalid where it is another one.
ValueId variableOf(const Module& module, ValueId pointer) {
  while (module[pointer].kind == ValueKind::Instruction) {
    const Instruction& x = module.instructions[module[pointer].index];
    if (x.op != Op::Access) return {};
    pointer = x.operands[0];
  }
  return module[pointer].kind == ValueKind::Variable ? pointer : ValueId();
}

}  // namespace

bool ValueRanges::isDirectlyIn(const Instruction& loop, uint32_t instruction) const {
  return std::ranges::any_of(loop.blocks, [&](BlockId block) {
    return std::ranges::any_of(m_[block].instructions, [&](InstructionId id) { return id.value == instruction; });
  });
}

ValueRanges::ValueRanges(const Module& module) : m_(module), tracked_(module.values.size(), false) {
  for (const Instruction& x : module.instructions)
    if (x.op == Op::Var) tracked_[x.result.index()] = isIndex(module.types[module.types[x.type].element]);
  for (const Instruction& x : module.instructions) {
    for (size_t k = 0; k < x.operands.size(); ++k) {
      const bool plain = k == 0 && (x.op == Op::Load || x.op == Op::Store);
      if (!plain) tracked_[x.operands[k].index()] = false;
    }
  }
}

void ValueRanges::enter(const Function& function) {
  size_ = function.workgroup_size.value_or(std::array<uint32_t, 3>{});
  for (const Parameter& parameter : function.parameters) builtins_[parameter.value] = parameter.builtin;
}

const Instruction* ValueRanges::definition(ValueId value) const { return kernel::definition(m_, value); }

bool ValueRanges::isTracked(ValueId pointer) const { return pointer.index() < tracked_.size() && tracked_[pointer.index()]; }

ValueId ValueRanges::nameOf(ValueId value) const {
  const auto found = names_.find(value);
  return found == names_.end() ? value : found->second;
}

void ValueRanges::visit(const Instruction& x) {
  if (x.op == Op::Extract) {
    const std::optional<int64_t> component = constantOf(m_, x.operands[1]);
    if (!component || !isIndex(m_.typeOf(x.result))) return;
    const auto [entry, is_new] = components_.try_emplace(std::pair(x.operands[0], static_cast<uint32_t>(*component)), x.result);
    if (!is_new && entry->second != x.result) names_[x.result] = entry->second;
    return;
  }
  if (x.op == Op::Var && isTracked(x.result)) {
    current_.erase(x.result);
    counters_.erase(x.result);
    if (x.operands.empty()) {
      counters_[x.result] = {0, 0};
    } else {
      current_[x.result] = nameOf(x.operands[0]);
    }
    return;
  }
  if (x.operands.empty() || !isTracked(x.operands[0])) return;
  const ValueId variable = x.operands[0];
  if (x.op == Op::Store) {
    current_[variable] = nameOf(x.operands[1]);
    return;
  }
  const auto [entry, is_new] = current_.try_emplace(variable, x.result);
  if (!is_new && entry->second != x.result) {
    names_[x.result] = entry->second;
    return;
  }
  names_.erase(x.result);
  const auto counter = counters_.find(variable);
  if (counter != counters_.end()) first_[x.result] = counter->second;
}

void ValueRanges::collectStores(BlockId block, std::map<ValueId, uint32_t>& counts) const {
  for (const InstructionId id : m_[block].instructions) {
    const Instruction& x = m_[id];
    if (x.op == Op::Store && isTracked(x.operands[0])) ++counts[x.operands[0]];
    if (x.op == Op::Var && isTracked(x.result)) ++counts[x.result];
    for (const BlockId inner : x.blocks) collectStores(inner, counts);
  }
}

void ValueRanges::forgetStores(BlockId block) {
  std::map<ValueId, uint32_t> counts;
  collectStores(block, counts);
  for (const auto& [variable, count] : counts) {
    current_.erase(variable);
    counters_.erase(variable);
  }
}

std::optional<Rounds> ValueRanges::enterLoop(const Instruction& loop) {
  std::map<ValueId, uint32_t> counts;
  for (const BlockId block : loop.blocks) collectStores(block, counts);
  std::map<ValueId, Range> before;
  for (const auto& [variable, count] : counts) {
    const auto value = current_.find(variable);
    const auto unloaded = counters_.find(variable);
    if (count == 1 && value != current_.end()) {
      before[variable] = rangeOf(value->second);
    } else if (count == 1 && unloaded != counters_.end()) {
      before[variable] = unloaded->second;
    }
    current_.erase(variable);
    counters_.erase(variable);
  }
  std::optional<Rounds> fewest;
  for (const auto& [variable, range] : before) {
    const std::optional<Rounds> rounds = keepCounter(loop, variable, range);
    if (rounds && (!fewest || rounds->most < fewest->most)) fewest = rounds;
  }
  return fewest;
}

/// A variable that only the continuing block stores, one constant step further, stays on its side of where it began when the test at the
/// start of the body leaves room for the step.
std::optional<Rounds> ValueRanges::keepCounter(const Instruction& loop, ValueId variable, Range before) {
  if (loop.blocks.size() < 2) return std::nullopt;
  std::optional<int64_t> step;
  for (const InstructionId id : m_[loop.blocks[1]].instructions) {
    const Instruction& store = m_[id];
    if (store.op != Op::Store || store.operands[0] != variable) continue;
    const Instruction* sum = definition(store.operands[1]);
    if (sum == nullptr || (sum->op != Op::Add && sum->op != Op::Sub)) return std::nullopt;
    const Instruction* load = definition(sum->operands[0]);
    if (load == nullptr || load->op != Op::Load || load->operands[0] != variable) return std::nullopt;
    // One that was loaded before the loop stays what it was, so the variable would not move after the first round.
    if (!isDirectlyIn(loop, m_[sum->operands[0]].index)) return std::nullopt;
    step = constantOf(m_, sum->operands[1]);
    if (step && sum->op == Op::Sub) step = -*step;
  }
  if (!step) return std::nullopt;
  const size_t start = mark();
  std::optional<Range> inside;
  for (const InstructionId id : m_[loop.blocks[0]].instructions) {
    const Instruction& x = m_[id];
    if (x.op == Op::Store) break;
    visit(x);
    if (info(x.op).group != OpGroup::Control) continue;
    if (x.op == Op::If && (leavesLoop(m_, x.blocks[0]) || leavesLoop(m_, x.blocks[1]))) {
      assume(x.operands[0], !leavesLoop(m_, x.blocks[0]));
      const auto value = current_.find(variable);
      if (value != current_.end()) inside = rangeOf(value->second);
    }
    break;
  }
  undo(start);
  current_.erase(variable);
  if (!inside) return std::nullopt;
  const Range all = m_.types[m_.typeOf(variable).element].is(Scalar::I32) ? kI32 : kU32;
  if (*step >= 0 && inside->high + *step <= all.high) counters_[variable] = {before.low, all.high};
  if (*step < 0 && inside->low + *step >= all.low) counters_[variable] = {all.low, before.high};
  if (*step == 0 || !counters_.contains(variable)) return std::nullopt;
  // The numbers between the start and the bound, one step apart: none wraps, so each is met at most once.
  const int64_t distance = *step > 0 ? inside->high - before.low : before.high - inside->low;
  const uint64_t most = distance < 0 ? 0 : static_cast<uint64_t>(distance / std::abs(*step)) + 1;
  return Rounds{.most = most, .exact = before.low == before.high};
}

Range ValueRanges::limits(ValueId value) const { return m_.typeOf(value).is(Scalar::I32) ? kI32 : kU32; }

Range ValueRanges::rangeOf(ValueId value) const { return rangeOf(value, kDepth); }

Range ValueRanges::rangeOf(ValueId given, int depth) const {
  const ValueId value = nameOf(given);
  if (const std::optional<int64_t> number = constantOf(m_, value)) return {*number, *number};
  const auto fact = facts_.find(value);
  const Range known = fact == facts_.end() ? limits(value) : fact->second;
  if (!isIndex(m_.typeOf(value)) || depth == 0) return known;
  return both(computed(value, depth - 1), known);
}

Range ValueRanges::computed(ValueId value, int depth) const {
  const Range all = limits(value);
  const auto builtin = builtins_.find(value);
  if (builtin != builtins_.end() && builtin->second == Builtin::LocalInvocationIndex)
    return {0, int64_t{size_[0]} * size_[1] * size_[2] - 1};
  const Instruction* x = definition(value);
  if (x == nullptr) return all;
  if (x->op == Op::Load) {
    const auto first = first_.find(value);
    return first == first_.end() ? all : first->second;
  }
  if (x->op == Op::Extract) {
    const std::optional<int64_t> component = constantOf(m_, x->operands[1]);
    const auto whole = builtins_.find(x->operands[0]);
    const bool local = whole != builtins_.end() && whole->second == Builtin::LocalInvocationId;
    return local && component ? Range{0, int64_t{size_[static_cast<size_t>(*component)]} - 1} : all;
  }
  if (x->op == Op::Convert || x->op == Op::Bitcast) {
    const Type& from = m_.typeOf(x->operands[0]);
    if (from.is(Scalar::Bool)) return {0, 1};
    if (!isIndex(from)) return all;
    const Range range = rangeOf(x->operands[0], depth);
    return contains(all, range) ? range : all;
  }
  if (x->op == Op::Select) {
    const Range a = rangeOf(x->operands[0], depth), b = rangeOf(x->operands[1], depth);
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
  }
  if (x->op == Op::Clamp) {
    const Range a = rangeOf(x->operands[0], depth), low = rangeOf(x->operands[1], depth), high = rangeOf(x->operands[2], depth);
    return {std::min(std::max(a.low, low.low), high.low), std::min(std::max(a.high, low.high), high.high)};
  }
  const auto* row = std::find_if(std::begin(kRules), std::end(kRules), [&](const Row& each) { return each.op == x->op; });
  if (row == std::end(kRules)) return all;
  const std::optional<Range> result = row->rule(rangeOf(x->operands[0], depth), rangeOf(x->operands[1], depth));
  return result && contains(all, *result) ? *result : all;
}

bool ValueRanges::isBelowLength(ValueId index, ValueId array) const {
  const ValueId variable = variableOf(m_, array);
  return variable.valid() &&
         std::find(below_length_.begin(), below_length_.end(), std::pair(nameOf(index), variable)) != below_length_.end();
}

void ValueRanges::assume(ValueId condition, bool holds) { assume(condition, holds, kDepth); }

void ValueRanges::assume(ValueId condition, bool holds, int depth) {
  const Instruction* x = definition(condition);
  if (x == nullptr || depth == 0) return;
  if (x->op == Op::Not) return assume(x->operands[0], !holds, depth - 1);
  if ((x->op == Op::And && holds) || (x->op == Op::Or && !holds)) {
    for (const ValueId operand : x->operands) assume(operand, holds, depth - 1);
    return;
  }
  const Comparison* row = comparison(x->op);
  if (row == nullptr || !isIndex(m_.typeOf(x->operands[0]))) return;
  const Op op = holds ? row->op : row->opposite;
  narrow(x->operands[0], op, x->operands[1]);
  narrow(x->operands[1], comparison(op)->mirrored, x->operands[0]);
}

/// `value op other` holds.
void ValueRanges::narrow(ValueId given, Op op, ValueId other) {
  const ValueId value = nameOf(given);
  const Range bound = rangeOf(other), all = limits(value);
  Range fact = all;
  if (op == Op::Lt && bound.high > all.low) fact.high = bound.high - 1;
  if (op == Op::Le || op == Op::Eq) fact.high = bound.high;
  if (op == Op::Gt && bound.low < all.high) fact.low = bound.low + 1;
  if (op == Op::Ge || op == Op::Eq) fact.low = bound.low;
  // Another number than the first or the last one.
  const Range known = rangeOf(value);
  if (op == Op::Ne && bound.low == bound.high && known.low < known.high) {
    if (bound.low == known.low) fact.low = known.low + 1;
    if (bound.low == known.high) fact.high = known.high - 1;
  }
  const auto [entry, is_new] = facts_.try_emplace(value, all);
  log_.push_back({value, entry->second});
  entry->second = both(entry->second, fact);
  const Instruction* length = definition(nameOf(other));
  if (op != Op::Lt || length == nullptr || length->op != Op::ArrayLength) return;
  below_length_.emplace_back(value, variableOf(m_, length->operands[0]));
  log_.push_back({ValueId(), {}});
}

void ValueRanges::undo(size_t mark) {
  for (; log_.size() > mark; log_.pop_back()) {
    if (log_.back().value.valid()) {
      facts_[log_.back().value] = log_.back().before;
    } else {
      below_length_.pop_back();
    }
  }
}

}  // namespace lockstep::kernel
