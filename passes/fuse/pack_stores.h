// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"
#include "ir/program/tuning.h"

namespace lockstep::passes {

struct PackConfig {
  program::DeviceProfile profile;
  bool templates = false;              ///< as in ScheduleConfig
  program::TuningTable measured = {};  ///< as in ScheduleConfig
};

/// Results of packed types are stored by groups whose invocations have all elements of a word (word_owners.h). Any other group makes what
/// such an element is in a register instead, and a map of its own packs it.
graph::Graph packStores(graph::Graph graph, const PackConfig& config);

}  // namespace lockstep::passes
