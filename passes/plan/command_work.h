// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/location.h"

namespace lockstep::passes {

/// What a command has to do at least, for profiles.
struct CommandWork {
  /// Of what it reads or writes, each byte once; of a tensor that an index selects from, as many rows as the index has elements.
  uint64_t bytes = 0;
  /// Arithmetic by the graph: 2*M*N*K a contraction, one for each element of an element op, of a scan, and of what is reduced or scattered.
  /// Absent where a kernel came with its node: the plan does not know what it computes.
  std::optional<uint64_t> operations;
  /// The calls that it computes, and those of other commands with the same kernel, sorted. Empty for copies and for the optimizer.
  std::vector<Location> lines;
};

/// For each command of `program`, which emit and later passes made of `planned`, the commands of `planned` whose results it writes.
std::vector<std::vector<size_t>> findParts(const program::Program& planned, const program::Program& program);

/// One for each command of `program`, which emit and later passes made of `planned`. Kernels of `planned` are still graphs, which is where
/// the numbers come from; a command of `program` does the work of all commands of `planned` that write its results.
std::vector<CommandWork> countWork(const program::Program& planned, const program::Program& program);

}  // namespace lockstep::passes
