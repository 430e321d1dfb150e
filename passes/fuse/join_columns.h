// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"
#include "ir/program/tuning.h"

namespace lockstep::passes {

struct JoinConfig {
  program::DeviceProfile profile;
  bool templates = false;              ///< as in ScheduleConfig
  program::TuningTable measured = {};  ///< as in ScheduleConfig
};

/// Sums by columns over blocks of rows (splitReductions) become a part of a group that has these rows in registers anyway, where its plan
/// keeps them there: the gradients of a norm's gain and offset beside that of its operand. What they read is then read once, and what only
/// they read is not stored.
graph::Graph joinColumns(graph::Graph graph, const JoinConfig& config);

}  // namespace lockstep::passes
