// SPDX-License-Identifier: Apache-2.0
// What the neighbours in a vector of a row have in common when their products are summed up.
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// What a sum adds up, as a product. The sum of `width` neighbours, from a multiple of it on, is that of the products of their `own`
/// factors, times the `shared` ones: the scale of a group of integers is multiplied once for all of them.
struct SumFactors {
  std::vector<graph::ValueId> own;  ///< in the order of the text; one is the operand itself where nothing is shared
  std::vector<graph::ValueId> shared;
};

/// Of the operand of a reduction in a kernel over rows of `columns` elements.
SumFactors factorsOf(const graph::Graph& body, const graph::Node& reduce, int64_t columns, int64_t width);

}  // namespace lockstep::passes
