// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Mixed precision: a function whose result is only read rounded to 16 bits, or by products that are, is computed to a little more than
/// those, where it has such a form (the attribute `coarse`).
graph::Graph coarseFunctions(const graph::Graph& graph);

}  // namespace lockstep::passes
