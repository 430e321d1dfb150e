// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Folds constants, applies the table of algebraic rules, merges equal nodes and removes dead ones, until nothing changes.
/// Every rule is exact in f32 up to the sign of a zero, which WGSL leaves open.
///   %2 = constant 1  %3 = mul %1, %2  %4 = exp %3  %5 = exp %1    =>    %2 = exp %1
/// Never fails.
Result<graph::Graph> simplify(const graph::Graph& graph);

}  // namespace lockstep::passes
