// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Loops with as little in them as can be: what is the same for all iterations is computed before them, a product of slices with what
/// is the same is one product over the stack, before or after; carries, results, slices and operands that nobody needs are left out.
///   %h: f32[5,2,3] = loop %h0, %x, %w {...} body {            %xw: f32[4,2,3] = matmul %x, %w
///     %1: f32[2,3] = matmul %slice0, %capture0           =>   %h: f32[5,2,3] = loop %h0, %xw {...} body {
///     %2: f32[2,3] = add %carry0, %1                            %1: f32[2,3] = add %carry0, %slice0
graph::Graph tidyLoops(const graph::Graph& graph);

}  // namespace lockstep::passes
