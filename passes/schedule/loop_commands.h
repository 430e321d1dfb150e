// SPDX-License-Identifier: Apache-2.0
// A scheduled body of a loop as commands of the program around it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "passes/schedule/kernel_table.h"

namespace lockstep::passes {

/// Where a leaf or an output of the body lies in the first iteration.
struct LoopPlace {
  program::BufferId buffer;
  uint64_t offset = 0;  ///< bytes
  int64_t step = 0;     ///< bytes per iteration
};

struct LoopPlaces {
  std::map<std::string, LoopPlace, std::less<>> leaves, outputs, states;
};

/// Appends the body's buffers and constants to `outer` and its kernels to `kernels`; returns its commands, in levels from 0 on. What moves
/// to places that cannot be bound is copied to a buffer of one row before the other commands, or from one after them.
std::vector<program::Command> loopCommands(const program::Program& body, const LoopPlaces& places, program::Program& outer,
                                           KernelTable& kernels);

}  // namespace lockstep::passes
