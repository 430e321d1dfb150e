// SPDX-License-Identifier: Apache-2.0
// A function of scalars as a graph: element operations on inputs without axes. A monoid's combine is one, for tensors and for kernels.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/graph.h"
#include "ir/support/result.h"

namespace lockstep::graph {

/// Of two tuples of these types, "earlier0", ..., "later0", ...; the results are the outputs, in order.
Graph makeCombine(
    std::span<const DType> types,
    const std::function<std::vector<ValueId>(Builder&, std::span<const ValueId> earlier, std::span<const ValueId> later)>& body);

/// The results of the function on tensors of one shape, element by element; `inputs` in the order of its leaves.
std::vector<ValueId> applyScalars(Builder& builder, const Graph& function, std::span<const ValueId> inputs);

/// That it is a combine of two tuples of these types: inputs and outputs, and element operations on scalars between them. The message says
/// what it is instead.
Status checkCombine(const Graph& function, std::span<const DType> types);

}  // namespace lockstep::graph
