// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/program.h"

namespace lockstep::passes {

struct PlanConfig {
  bool share = true;          ///< false: every buffer has bytes of its own (--disable-pass planBuffers); the results are bit-equal
  uint64_t memory_limit = 0;  ///< bytes of the workspace arena, 0 = none
};

/// Gives every buffer its arena and offset. State leaves get an arena each, so that programs can share them; inputs, outputs, constants
/// and workspace one arena a role. Two workspace buffers share bytes only when the last use of one is in an earlier level than the
/// definition of the other, so reuse adds no dependency.
/// Fails when the workspace is above the memory limit (planBuffers.memory), with the peak and the largest buffers.
Result<program::Program> planBuffers(const program::Program& program, const PlanConfig& config = {});

}  // namespace lockstep::passes
