// SPDX-License-Identifier: Apache-2.0
#include "passes/plan/free_bytes.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "passes/visits.h"

namespace lockstep::passes {

void ByteSet::add(uint64_t begin, uint64_t end) {
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second >= begin) --next;
  while (next != ranges_.end() && next->first <= end) {
    countVisits();
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ranges_.erase(next);
  }
  ranges_.emplace_hint(next, begin, end);
}

uint64_t ByteSet::skip(uint64_t begin, uint64_t end) const {
  countVisits();
  const auto after = ranges_.lower_bound(end);
  return after == ranges_.begin() ? begin : std::max(begin, std::prev(after)->second);
}

FreeBytes::FreeBytes(uint32_t levels) : leaves_(std::bit_ceil(std::max<size_t>(levels, 1))), nodes_(2 * leaves_) {}

/// Calls each(node, true) for the fewest nodes that make up the levels, and each(node, false) for those above them.
template <class Visit>
void FreeBytes::forParts(uint32_t first, uint32_t last, const Visit& each) const {
  size_t begin = leaves_ + first, end = leaves_ + last + 1;
  const size_t first_leaf = begin, last_leaf = end - 1;
  std::vector<size_t> parts;
  for (; begin < end; begin /= 2, end /= 2) {
    if (begin % 2 == 1) parts.push_back(begin++);
    if (end % 2 == 1) parts.push_back(--end);
  }
  for (const size_t part : parts) each(part, true);
  // All nodes above a part are above the first or the last level. Of these, the ones within the range are parts or below one.
  const auto isInside = [&](size_t node) {
    const size_t width = leaves_ / std::bit_floor(node);
    const size_t from = (node - std::bit_floor(node)) * width;
    return from >= first && from + width <= size_t{last} + 1;
  };
  for (size_t left = first_leaf / 2, right = last_leaf / 2; left > 0; left /= 2, right /= 2) {
    if (!isInside(left)) each(left, false);
    if (right != left && !isInside(right)) each(right, false);
  }
}

uint64_t FreeBytes::lowest(uint32_t first, uint32_t last, uint64_t size, uint64_t begin) const {
  std::vector<const ByteSet*> taken;
  forParts(first, last, [&](size_t node, bool is_part) { taken.push_back(is_part ? &nodes_[node].somewhere : &nodes_[node].throughout); });
  uint64_t offset = begin;
  for (bool moved = true; moved;) {
    moved = false;
    for (const ByteSet* set : taken) {
      const uint64_t free = set->skip(offset, offset + size);
      moved = moved || free > offset;
      offset = free;
    }
  }
  return offset;
}

void FreeBytes::take(uint32_t first, uint32_t last, uint64_t offset, uint64_t size) {
  if (size == 0) return;
  forParts(first, last, [&](size_t node, bool is_part) {
    nodes_[node].somewhere.add(offset, offset + size);
    if (is_part) nodes_[node].throughout.add(offset, offset + size);
  });
}

}  // namespace lockstep::passes
