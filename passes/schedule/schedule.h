// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "ir/program/tuning.h"

namespace lockstep::passes {

struct ScheduleConfig {
  program::DeviceProfile profile;
  bool templates = false;              ///< shaders/ are at hand
  program::TuningTable measured = {};  ///< plans that are taken where they fit
};

/// Turns a fused graph into commands: every group becomes a dispatch of a symbolic kernel with a plan for the profile, every value
/// that needs storage a virtual buffer, and commands are ordered into dependency levels. A next version of a state is made in place where
/// no other reader of the old version comes later, else copied. Equal bodies share a kernel. Bindings may be above the profile's limit:
/// splitDispatches is next.
Result<program::Program> schedule(const graph::Graph& graph, const ScheduleConfig& config);

}  // namespace lockstep::passes
