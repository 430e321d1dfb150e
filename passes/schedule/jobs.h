// SPDX-License-Identifier: Apache-2.0
// Commands before they have levels, and which of them wait for which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "ir/program/program.h"

namespace lockstep::passes {

/// A command, or the commands of a loop, whose levels count from its first one.
struct Job {
  program::Command command;
  std::set<size_t> after;  ///< jobs that must be in an earlier level
  bool is_loop = false;
  std::vector<program::Command> loop = {};
  uint32_t iterations = 1;

  /// The bytes that it touches at any time.
  [[nodiscard]] std::vector<program::Range> touched() const;
};

/// Every job gets the earliest level in which all that it waits for has run. Returns those that wait for each other, which have none.
std::vector<size_t> assignLevels(std::vector<Job>& jobs);

/// Appends the commands in the order of their levels, those of a level in their own order; but loops after the rest of their level, in
/// levels of their own.
void placeCommands(std::vector<Job> jobs, program::Program& program);

}  // namespace lockstep::passes
