// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// The reciprocal of a square root becomes one operation, which devices have. The root stays where something else uses it.
///   %1 = sqrt %x  %2 = reciprocal %1   =>   %2 = rsqrt %x
/// Never fails.
Result<graph::Graph> useRsqrt(const graph::Graph& graph);

}  // namespace lockstep::passes
