// SPDX-License-Identifier: Apache-2.0
// What a kernel of rows reads for each of its rows.
#pragma once

#include "passes/schedule/row_phases.h"

namespace lockstep::passes {

struct RowInputs {
  int64_t full = 0;  ///< inputs that have elements of their own for each row, all along it
  int64_t per_register =
      1;  ///< elements of a row in a word of the one that has the fewest: of f32 1, of bf16 2, of eight integers of 4 bits 8
};

/// Neighbours along the last axes of a value that show the same element through its views, as the integers of a word do.
int64_t sharedByNeighbours(const graph::Graph& body, graph::ValueId value);

RowInputs findRowInputs(const graph::Graph& body, const RowPhases& phases);

}  // namespace lockstep::passes
