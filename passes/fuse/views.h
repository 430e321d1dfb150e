// SPDX-License-Identifier: Apache-2.0
// How a node reads a value through views: what fuse and emit both need to know about index maps.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/index_map.h"
#include "ir/graph/op_def.h"

namespace lockstep::passes {

/// The value behind a chain of views, and the map from the index at the top of the chain to the value's index.
struct ViewedValue {
  graph::ValueId base;
  graph::IndexMap map;
};

/// The leaves of a symbolic kernel's body, which are its operands, in the order of its bindings. Its results, the outputs, come after them.
std::vector<graph::ValueId> inputsOf(const graph::Graph& body);

bool isView(const graph::Graph& graph, graph::ValueId value);
/// Whether its kernel code is so long that it stays out of large products (cost::kHeavyOperations).
bool takesManyOperations(const graph::Node& node);
/// The value that a chain of views reads and the map to it, without guards. Of a value that is not a view, the value itself.
ViewedValue throughViews(const graph::Graph& graph, graph::ValueId value);
/// The same, also through casts of packed numbers to f32, which are widened where they are read.
ViewedValue throughWidened(const graph::Graph& graph, graph::ValueId value);
/// The least number of elements on the way through views: a gain is repeated for each row, and part of a buffer of all parameters.
int64_t leastSeen(const graph::Graph& graph, graph::ValueId value);
/// The value behind views that only write all of its elements in another shape.
graph::ValueId throughShapes(const graph::Graph& graph, graph::ValueId value);
/// A new node for a region of the graph, at the end of `nodes`: `source` in the shape and type of `like`.
graph::ValueId viewInside(graph::Graph& graph, std::vector<graph::NodeId>& nodes, graph::ValueId like, graph::ValueId source);
/// Whether the node gives packed numbers of its operand as f32.
bool widens(const graph::Graph& graph, const graph::Node& node);

/// map.source as one row-major offset in elements over the axes of `shape`, without axes of extent 1 and with quotient and remainder of one
/// axis merged where they meet again.
graph::IndexExpr linearOffset(const graph::IndexMap& map, const graph::Shape& shape, const graph::Shape& source);

/// The row-major offset of an index of `shape` itself; axes of extent 1 do not appear. `drop` trailing elements-per-row: the offset of the
/// row when rows are `drop` elements long (they must be whole trailing axes; returns false otherwise).
bool rowOffset(const graph::Shape& shape, int64_t drop, graph::IndexExpr& offset);

/// True when reading `source` through `map` from an index space of `shape` touches element i at position i.
bool isLinearIdentity(const graph::IndexMap& map, const graph::Shape& shape, const graph::Shape& source);
/// True when the view is the same columns of each row of `source`, one row after the other.
bool isPartOfRows(const graph::IndexMap& map, const graph::Shape& shape, const graph::Shape& source);
/// True when position i touches element i / columns: a row value seen by the elements of its row.
bool isRowProjection(const graph::IndexMap& map, const graph::Shape& shape, const graph::Shape& source, int64_t columns);
/// True when the view is one contiguous range of its operand that starts at an element that is a multiple of `alignment`.
bool isContiguousSlice(const graph::IndexMap& map, const graph::Shape& shape, const graph::Shape& source, int64_t alignment,
                       int64_t& start);

/// The parts of a pack that a value is made of, which is the pack or a contiguous slice of it; nothing when it is something else.
std::optional<std::vector<graph::ValueId>> packedParts(const graph::Graph& graph, graph::ValueId value);

}  // namespace lockstep::passes
