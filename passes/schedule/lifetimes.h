// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace lockstep::passes {

/// The levels in which a buffer holds something that is needed.
struct Lifetime {
  size_t buffer = 0;
  uint32_t first = UINT32_MAX, last = 0;  ///< of an unused buffer so that it overlaps nothing
  bool crosses = false;                   ///< a loop: it holds what is made outside, or in another iteration
  [[nodiscard]] bool isUsed() const { return first <= last; }
  void join(const Lifetime& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
    crosses = crosses || other.crosses;
  }
};

/// By buffer. What a loop takes from outside, what it moves along and what is needed after it live from its first level to its last: every
/// iteration has them. Anything else of a loop lives within an iteration.
std::vector<Lifetime> lifetimesOf(const program::Program& program);

}  // namespace lockstep::passes
