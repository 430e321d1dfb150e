// SPDX-License-Identifier: Apache-2.0
// What was compiled and what ran, for reports and tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/trace/model_outline.h"

namespace lockstep {

/// A temporary of a step, in the arena that they all share.
struct PlannedBuffer {
  std::string name;
  uint64_t offset = 0, bytes = 0;
  uint32_t first_level = 0, last_level = 0;  ///< dependency levels in which it is used
};

/// A compiled program and its device. With dynamic extents: the program that was compiled last; zeros before the first.
struct ProgramFacts {
  std::string device;         ///< "vulkan:0"
  std::string device_name;    ///< as the driver says
  std::string driver;         ///< its name and version; may be empty
  std::string device_reason;  ///< why it was chosen
  bool on_cpu = false;        ///< the reference, or a CPU driver of Vulkan
  uint32_t dispatches = 0, levels = 0, distinct_kernels = 0;
  uint32_t plans = 0, measured_plans = 0;  ///< chosen for kernels; those that `lockstep tune` has measured
  uint64_t planned_bytes = 0;              ///< all arenas
  uint64_t workspace_bytes = 0;            ///< temporaries, sharing bytes
  uint64_t unpooled_bytes = 0;             ///< temporaries, if they shared none
  int64_t parameters = 0;                  ///< trainable numbers
  std::vector<std::string> passes;         ///< "fuse 0.012 s: 120 nodes -> 40 nodes"
  std::vector<PlannedBuffer> temporaries;
  ModelOutline outline;  ///< of the function that was traced
};

/// Counters of a trainer or a forward over all its programs; device_allocations stays constant once each has run.
struct RunFacts {
  uint64_t submissions = 0, steps = 0, device_allocations = 0;
  uint64_t device_bytes = 0;  ///< of the programs that are loaded, states aside
  uint64_t compilations = 0;  ///< programs that were compiled so far
  uint64_t programs = 0;      ///< programs that are loaded now
};

}  // namespace lockstep
