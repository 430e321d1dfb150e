// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Which values stand beside reductions over the rows of their space: a norm's operand, its cotangent, and what is computed of both.
class RowRelations {
 public:
  explicit RowRelations(const graph::Graph& graph);
  /// Whether rows of `columns` elements of the value, or of what it is computed from element by element, are reduced, or whether it is
  /// computed from such a reduction.
  [[nodiscard]] bool beside(graph::ValueId value, int64_t columns) const;

 private:
  const graph::Graph& graph_;
  std::vector<int64_t> reduced_;  ///< by value: the columns of a reduction that it goes into, through elements; 0: none
  std::vector<int64_t> made_of_;  ///< by value: the columns of a reduction that it is computed from
};

}  // namespace lockstep::passes
