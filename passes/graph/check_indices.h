// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

/// An index that a step may get wrong.
struct IndexCheck {
  graph::ValueId index;   ///< whose elements are looked at: what the op takes, without the views in between that keep all elements
  graph::NodeId user;     ///< the op that takes it
  graph::IndexUse range;  ///< what is right
};

/// What may be wrong, in the order of the graph: the operands that ops name as indices (OpDef::index) and that an output depends on, each
/// index and range once. Left out are those that cannot be wrong (OpDef::range: constants, arange, argmax, ...) and those that a gradient
/// takes over from the forward computation.
std::vector<IndexCheck> findIndexChecks(const graph::Graph& graph);
/// Whether the elements are those of an input. Whoever gives the input can look at them before the program runs, which costs it nothing.
bool isGiven(const graph::Graph& graph, const IndexCheck& check);

/// The outputs of check `number` of findIndexChecks().
std::string indexRowName(size_t number);
std::string indexValueName(size_t number);
bool isIndexRow(std::string_view output);

/// Adds outputs of kind `check` for the indices that the program computes: which one is outside of its range first, and what it is. They
/// depend on indices alone, so they run beside the other levels of a program. Inputs that are indices say what their range is.
///   %y = embedding %table, %idx   =>   ... %7 = reduce_min %6 ...  %9 = take_along_axis %idx, %8
///                                      output check "index.0.row" %7 / output check "index.0.value" %9
/// Never fails.
Result<graph::Graph> checkIndices(const graph::Graph& graph);

}  // namespace lockstep::passes
