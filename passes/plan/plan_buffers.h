// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/program.h"

namespace lockstep::passes {

struct PlanConfig {
  bool share = true;          ///< false: every buffer has bytes of its own (--disable-pass planBuffers); the results are bit-equal
  uint64_t memory_limit = 0;  ///< bytes of all workspace arenas, 0 = none
  uint64_t arena_limit = uint64_t{1} << 62;  ///< bytes of one of them, but for a larger buffer
  bool separate_access = false;              ///< no dispatch reads and writes one workspace arena (DeviceProfile::whole_buffer_access)
};

/// Gives every buffer its arena and offset. State leaves get an arena each, so that programs can share them; inputs, outputs, constants
/// and workspace one arena per role; with separate_access, or above arena_limit, as many for the workspace as it takes. Two workspace
/// buffers share bytes only when the last use of one is in an earlier level than the definition of the other, so reuse adds no dependency,
/// or where a dispatch makes a result in the bytes of an operand that is not needed again (takeOver). Above the memory limit commands run
/// in another order and in more levels (orderCommands), so that fewer bytes live at a time. Fails when no order that was tried is within
/// the memory limit (planBuffers.memory), with the bytes that it takes and the largest buffers.
Result<program::Program> planBuffers(const program::Program& program, const PlanConfig& config = {});

}  // namespace lockstep::passes
