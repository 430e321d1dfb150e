// SPDX-License-Identifier: Apache-2.0
// A vector that is scaled by a number which is made of its own elements, as norms scale it: x g / |x|.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

/// A vector as the product of vectors of its length, and numbers that are computed of reductions over these.
struct ScaledVector {
  std::vector<graph::ValueId> factors, scales;
};

/// Reads `vector` as such a product; without scales where it is none. What its reductions read, the factors read anyway.
ScaledVector scaledVector(const graph::Graph& graph, graph::ValueId vector);

/// The product of the factors in the graph that is made, of this shape.
graph::ValueId productOf(Rewriter& rewriter, const ScaledVector& vector, const graph::Shape& shape);

/// A scale once per sum of a matrix over an axis, each computed anew beside that sum.
///   %3 = sum %2; %4 = rsqrt %3   =>   %7 = sum (broadcast_to (reshape %2)) {axes = [0]}; %8 = rsqrt %7
graph::ValueId scaleBeside(Rewriter& rewriter, const graph::Graph& graph, graph::ValueId scale, const graph::Shape& matrix, int64_t axis);

}  // namespace lockstep::passes
