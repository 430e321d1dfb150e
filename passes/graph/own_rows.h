// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Attention of queries whose own keys and values were just written to the end of a cache reads these where they were made, and the rest
/// in the cache as it was: it does not wait for what writes the cache, which then runs beside later work.
///   %3 = update_rows %1, %2, %at; %5 = attend_cache %q, %3, %4, (add %at, T)   =>   %5 = attend_cache %q, %1, ..., (add %at, T), %2, ...
/// The same numbers, bit for bit. Not where anything else reads the cache as it was written.
graph::Graph ownRows(const graph::Graph& graph);

}  // namespace lockstep::passes
