// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/syntax/xid.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace lockstep::wgsl {
namespace {

struct CodeRange {
  uint32_t first, last;
};

#include "frontend/wgsl/syntax/xid_ranges.inc"

bool isIn(std::span<const CodeRange> ranges, uint32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &CodeRange::first);
  return after != ranges.begin() && c <= std::prev(after)->last;
}

bool isLetter(uint32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

bool isXidStart(uint32_t c) { return c < 0x80 ? isLetter(c) : isIn(kXidStart, c); }

bool isXidContinue(uint32_t c) { return c < 0x80 ? isLetter(c) || c == '_' || (c >= '0' && c <= '9') : isIn(kXidContinue, c); }

}  // namespace lockstep::wgsl
