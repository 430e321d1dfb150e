// SPDX-License-Identifier: Apache-2.0
// The order of the reductions in a group of kind "rows": each phase is one loop over the row.
#pragma once

#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

struct RowPhases {
  int64_t rows = 0, columns = 0;
  std::vector<std::vector<graph::NodeId>> phases;  ///< reductions that need only values of the phases before
  std::vector<size_t> phase_of;                    ///< by node: the phase after which its value is known; 0 = before the first
  /// By node: an element whose result is read at the row alone, once per row. Another value may have as many elements, such as one per
  /// column of a square space.
  std::vector<bool> once_per_row;
  std::vector<size_t> row_results, full_results;  ///< outputs with one value per row, and with one per element

  /// Elements of the words of full results: 2 where one is an f16, 1 where all are whole words.
  [[nodiscard]] int64_t wordElements(const graph::Graph& body) const;
  /// The same of results with one value per row.
  [[nodiscard]] int64_t rowWordElements(const graph::Graph& body) const;
  /// Loops over the row that the kernel runs one after the other.
  [[nodiscard]] size_t loops() const { return phases.size() + (full_results.empty() ? 0 : 1); }
};

RowPhases findRowPhases(const graph::Graph& body);

}  // namespace lockstep::passes
