// SPDX-License-Identifier: Apache-2.0
// What neighbouring elements read: whether several of them may be loaded at once.
#pragma once

#include <cstdint>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

/// What an index expression gives for `width` neighbouring elements of a shape, of which the first one's number is a multiple of `width`.
enum class LaneForm : uint8_t {
  Same,        ///< the same number for all of them
  Neighbours,  ///< a multiple of `width`, and the numbers after it
  Other        ///< neither is proven
};

/// Of a sum of terms over the axes of `shape`, as linearOffset() gives it.
LaneForm laneForm(const graph::IndexExpr& offset, const graph::Shape& shape, int64_t width);

/// Whether a guard holds for all of `width` neighbouring elements or for none of them. `expr` is what it asks of, over the axes of `shape`.
bool holdsTogether(const graph::IndexGuard& guard, const graph::IndexExpr& expr, const graph::Shape& shape, int64_t width);

/// Whether two neighbours along the last axis of an index space are neighbours in memory too, where `map` gives the index of `value`.
bool readsNeighbours(const graph::Graph& graph, graph::ValueId value, const graph::IndexMap& map, const graph::Shape& space);

/// True when every input of a map that has at least as many elements as its results is read by `width` neighbours at once, wherever it is
/// read, and nothing is read at places that an op computes.
bool readsNeighbours(const graph::Graph& body, int64_t width);

}  // namespace lockstep::passes
