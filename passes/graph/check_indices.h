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
  graph::IndexUse range;  ///< what is right
  std::string_view op;    ///< the name of the op that takes it
  Location where;         ///< of that op
  graph::Shape shape;     ///< of the index; where a loop computes it, with its iterations as the first axis
  std::string leaf;       ///< the name of the leaf that the index is; empty: it is computed
  bool is_given = false;  ///< that leaf is an input: whoever gives it can look at it before the program runs, which costs it nothing
};

/// A graph and what may be wrong in it.
struct IndexChecks {
  graph::Graph graph;  ///< as it was, but that loops also give the indices that they compute and that have to be checked
  std::vector<IndexCheck> checks;
};

/// What may be wrong, in the order of the graph: the operands that ops name as indices (OpDef::index) and that an output depends on, also
/// those of ops in loops, each index and range once. Left out are those that cannot be wrong (OpDef::range: constants, arange, argmax, ...)
/// and those that a gradient takes over from the forward computation.
IndexChecks findIndexChecks(const graph::Graph& graph);

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
