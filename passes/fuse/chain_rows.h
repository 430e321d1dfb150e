// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct ChainConfig {
  program::DeviceProfile profile;
  bool templates = false;  ///< as in ScheduleConfig
};

/// Small products and reductions of the same rows that follow each other become one group, whose workgroups keep their rows in memory of
/// their own from one to the next: attention's output, the norm after it and the layers of a feed-forward part. A level takes longer than
/// what such a product does. A group joins those that it would wait for where it needs nothing else that is made so late, so nobody waits
/// longer than before.
///   y = group rows(x), z = group contract(y, w)  =>  y, z = group row_chain(x, w)
graph::Graph chainRows(graph::Graph graph, const ChainConfig& config);

}  // namespace lockstep::passes
