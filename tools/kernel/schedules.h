// SPDX-License-Identifier: Apache-2.0
// Whether a kernel gives the same under other schedules and subgroup sizes, all of which WGSL allows.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/dispatch.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep::tools {

/// A kernel that ran once.
struct ScheduleInput {
  const kernel::Module& module;  ///< of one entry point, as the user wrote it
  const program::ValidProgram& program;
  const std::vector<Bytes>& initial;  ///< of each buffer, before the run
  const std::vector<Bytes>& results;  ///< after it
  const std::vector<Slot>& slots;     ///< of each buffer; those of the kernel's variables
  uint64_t loop_budget = 0;
  bool ends = true;  ///< no loop of that run was endless
};

/// Runs it `count` times more, each time in another order of workgroups, of invocations between barriers and of atomics. Finding
/// order.schedule where a result differs by more than a reordered sum does.
Result<std::vector<Finding>> findScheduleDependence(const ScheduleInput& input, int64_t count, uint64_t seed);

/// Runs a kernel with subgroup operations with other sizes of subgroups. Finding subgroup.size, a warning if the kernel asks for the size.
Result<std::vector<Finding>> findSubgroupDependence(const ScheduleInput& input);

}  // namespace lockstep::tools
