// SPDX-License-Identifier: Apache-2.0
// A group's body cut along its rows: where every result depends on the same share of each operand, or on all of a small one, the body can
// run on a part of its rows at a time.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::passes {

struct RowCut {
  int64_t rows = 0;       ///< of the body; rows [r, r + n) are the same share of every value that is cut
  std::vector<bool> cut;  ///< by value: a slice has its share of the elements, in order; false: a slice uses the whole value
};

/// Nothing when some result needs other rows than its own (a product, a reduction over rows, a transposition, a value that depends on the
/// position) or a value is needed both in slices and whole.
std::optional<RowCut> cutRows(const graph::Graph& body);

/// The body for `rows` of the rows; nothing when an op cannot be made for a part of its shape.
std::optional<graph::Graph> sliceRows(const graph::Graph& body, const RowCut& cut, int64_t rows);

}  // namespace lockstep::passes
