// SPDX-License-Identifier: Apache-2.0
// Private to the optimizer pass: states that hold all parameters, or something for each of them, one after the other.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/builder.h"

namespace lockstep::passes {

/// Flat states are seen as rows, [total / 64, 64], so that a table of one entry per row applies to them: each parameter begins a row.
inline constexpr int64_t kRow = graph::kParameterAlignment;

inline graph::Shape rowsOf(int64_t elements) { return graph::Shape{elements / kRow, kRow}; }
/// The elements of a parameter with its padding.
inline int64_t padded(int64_t elements) { return (elements + kRow - 1) / kRow * kRow; }

/// A flat state leaf and its newest version.
struct FlatState {
  std::string name;
  graph::ValueId leaf, newest;
};
/// A new leaf.
FlatState flatStateOf(graph::Builder& b, std::string_view name, int64_t elements);
/// A part of a flat value.
graph::ValueId slice(graph::Builder& b, graph::ValueId flat, int64_t offset, int64_t length);
/// A part of a state before this step, as rows.
graph::ValueId before(graph::Builder& b, const FlatState& state, int64_t offset, int64_t length);
/// Makes `rows` the newest version of a part.
void write(graph::Builder& b, FlatState& state, int64_t offset, graph::ValueId rows);
/// The newest version is that of the next step.
void finish(graph::Builder& b, const FlatState& state);

}  // namespace lockstep::passes
