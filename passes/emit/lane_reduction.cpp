// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/lane_reduction.h"

#include <algorithm>

#include "passes/emit/emitters.h"

namespace lockstep::passes {

using kernel::Op;
using kernel::ValueId;

namespace {

/// Values that every lane reads after one barrier; of more, some lanes combine this many parts first.
constexpr int64_t kMostRead = 16;

uint32_t unsigned32(int64_t value) { return static_cast<uint32_t>(value); }

}  // namespace

void PairwiseReduction::add(ValueId element) {
  for (size_t bits = count_++; bits % 2 == 1; bits /= 2) {
    element = reduce_->combine(*b_, waiting_.back(), element);
    waiting_.pop_back();
  }
  waiting_.push_back(element);
}

ValueId PairwiseReduction::total() {
  while (waiting_.size() > 1) {
    const ValueId last = waiting_.back();
    waiting_.pop_back();
    waiting_.back() = reduce_->combine(*b_, waiting_.back(), last);
  }
  return waiting_.front();
}

void combineInSubgroup(kernel::Builder& b, std::vector<LanePart>& parts, int64_t lanes, int64_t stride) {
  auto& capabilities = b.module().capabilities;
  if (lanes > 1 && std::ranges::find(capabilities, kernel::Capability::Subgroups) == capabilities.end())
    capabilities.push_back(kernel::Capability::Subgroups);
  for (int64_t mask = 1; mask < lanes; mask *= 2) {
    for (auto& [reduce, value] : parts) {
      const ValueId other = b.make(Op::SubgroupShuffleXor, {value, b.u32(unsigned32(mask * stride))});
      value = reduce->combine(b, value, other);  // it commutes, so both lanes get the same
    }
  }
}

int64_t LaneReduction::words(const Shape& shape, int64_t reductions) {
  const int64_t values = shape.lanes / std::min(shape.lanes, shape.subgroup);
  return values == 1 ? 0 : 2 * reductions * shape.rows * values;
}

void LaneReduction::combine(std::vector<Part>& parts) {
  const int64_t together = std::min(shape_.lanes, shape_.subgroup);
  combineInSubgroup(b_, parts, together);
  int64_t values = shape_.lanes / together;
  if (values == 1) return;
  const ValueId first = b_.make(Op::Mul, {place_.row, b_.u32(unsigned32(values))});
  const int64_t slots = values * shape_.rows;
  ValueId writes, number = place_.lane;
  if (together > 1) {
    const ValueId size = b_.u32(unsigned32(together));
    writes = b_.make(Op::Eq, {b_.make(Op::Rem, {place_.lane, size}), b_.u32(0)});
    number = b_.make(Op::Div, {place_.lane, size});
  }
  if (values > kMostRead) {
    // Lane l combines the values l, l + 16, ... of its row, as do those that repeat it; then there are 16.
    const ValueId part = b_.make(Op::Rem, {place_.lane, b_.u32(unsigned32(kMostRead))});
    exchange(parts, {.writes = writes,
                     .slot = b_.make(Op::Add, {first, number}),
                     .first = b_.make(Op::Add, {first, part}),
                     .count = values / kMostRead,
                     .stride = kMostRead,
                     .slots = slots});
    writes = b_.make(Op::Lt, {place_.lane, b_.u32(unsigned32(kMostRead))});
    number = part;
    values = kMostRead;
  }
  exchange(parts, {.writes = writes, .slot = b_.make(Op::Add, {first, number}), .first = first, .count = values, .slots = slots});
}

void LaneReduction::endRound() {
  if (turn_ % 2 == 0) return;  // the last barrier was that of the other arrays
  b_.makeVoid(Op::WorkgroupBarrier);
  ++turn_;
}

void LaneReduction::exchange(std::vector<Part>& parts, const Exchange& how) {
  std::vector<ValueId> arrays;
  for (size_t i = 0; i < parts.size(); ++i) arrays.push_back(memory(b_.typeIdOf(parts[i].value), i, how.slots));
  const auto write = [&] {
    for (size_t i = 0; i < parts.size(); ++i) b_.store(b_.access(arrays[i], {how.slot}, true), parts[i].value);
  };
  if (how.writes.valid()) {
    b_.ifThen(how.writes, write);
  } else {
    write();
  }
  b_.makeVoid(Op::WorkgroupBarrier);
  for (size_t i = 0; i < parts.size(); ++i) {
    PairwiseReduction values(b_, *parts[i].reduce);
    for (int64_t k = 0; k < how.count; ++k) {
      const ValueId at = k == 0 ? how.first : b_.make(Op::Add, {how.first, b_.u32(unsigned32(k * how.stride))});
      values.add(b_.load(b_.access(arrays[i], {at}, true)));
    }
    parts[i].value = values.total();
  }
  ++turn_;
}

ValueId LaneReduction::memory(kernel::TypeId type, size_t index, int64_t slots) {
  ValueId& array = memory_[{turn_ % 2, index, type.index()}];
  if (!array.valid()) array = workgroupArray(b_, "scratch", type, slots);
  return array;
}

}  // namespace lockstep::passes
