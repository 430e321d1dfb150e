// SPDX-License-Identifier: Apache-2.0
// In which levels of a program a buffer holds a value.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace lockstep::passes {

struct Lifetime {
  size_t buffer = 0;
  uint32_t first = UINT32_MAX, last = 0;  ///< levels of the first and the last use
  [[nodiscard]] bool used() const { return first != UINT32_MAX; }
  [[nodiscard]] bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};
/// By buffer.
std::vector<Lifetime> lifetimes(const program::Program& program);

/// Gives each command of a level a level of its own: of the level with the most bytes of living workspace buffers among those with several
/// commands. Commands that end more bytes than they begin come first. False when every level has one command.
bool takeFullestLevelApart(program::Program& program);

}  // namespace lockstep::passes
