// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// A large product with a vector, [M, I] [I, 1] or [1, I] [I, N], is a sum of the matrix by rows or by columns, whichever lies side by side
/// in memory: a tile would leave all but one of its columns empty. Long sums by columns are split later on like all others.
///   %2: f32[50176,1] = matmul %0, %1   =>   %2 = sum (mul %0, (reshape %1)) {axes = [1]}
/// Where the vector is scaled by a number that is made of its own elements (RMSNorm), each column computes that number beside its sum and
/// is scaled after it: the elements are read anyway, and nothing waits for the number.
/// The sums are of the same products in f32 in another order. For GPUs; on CPUs tiles of one column are as fast.
graph::Graph thinProducts(const graph::Graph& graph);

}  // namespace lockstep::passes
