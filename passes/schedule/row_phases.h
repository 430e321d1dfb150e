// SPDX-License-Identifier: Apache-2.0
// The order of the reductions in a group of kind "rows": each phase is one loop over the row.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

/// A sum by columns in a group of rows, over the rows of each part: [parts * rounds, columns] -> [parts, columns], where the last part may
/// have fewer rows.
struct ColumnPart {
  graph::NodeId node;
  graph::ValueId source;  ///< what is summed up, one element for each of the space of the rows
  int64_t parts = 1, rounds = 1, columns = 1;
  friend bool operator==(const ColumnPart&, const ColumnPart&) = default;
};
/// The reduction as such a sum: over the middle axis of [parts, rounds, columns], which is `source` filled up with neutral elements and
/// reshaped.
std::optional<ColumnPart> columnPart(const graph::Graph& body, graph::NodeId reduce);

struct RowPhases {
  int64_t rows = 0, columns = 0;
  std::vector<std::vector<graph::NodeId>> phases;  ///< reductions that need only values of the phases before
  std::vector<size_t> phase_of;                    ///< by node: the phase after which its value is known; 0 = before the first
  /// By node: an element whose result is read at the row alone, once per row. Another value may have as many elements, such as one per
  /// column of a square space.
  std::vector<bool> once_per_row;
  std::vector<size_t> row_results, full_results;  ///< outputs with one value per row, and with one per element
  std::vector<ColumnPart> parts;                  ///< all of as many parts and rounds
  std::vector<size_t> part_results;               ///< of each of them, its output
  std::optional<graph::NodeId> misplaced;         ///< a reduction that is none of all these

  /// Elements of the words of full results: 2 where one is an f16, 1 where all are whole words.
  [[nodiscard]] int64_t wordElements(const graph::Graph& body) const;
  /// The same of results with one value per row.
  [[nodiscard]] int64_t rowWordElements(const graph::Graph& body) const;
  /// Whether nothing of a row is needed once its reductions are known, and these do not need one another.
  [[nodiscard]] bool areReadOnce() const { return phases.size() == 1 && full_results.empty() && parts.empty(); }
  /// Rows that the same lanes can have at once: several where rows are read once, no value per row is needed before, and results are whole
  /// words.
  [[nodiscard]] int64_t mostTogether(const graph::Graph& body) const;
  /// Operations that a kernel repeats for each element of a row.
  [[nodiscard]] int64_t operationsPerElement(const graph::Graph& body) const;
  /// Loops over the row that the kernel runs one after the other.
  [[nodiscard]] size_t loops() const { return phases.size() + (full_results.empty() ? 0 : 1); }
};

RowPhases findRowPhases(const graph::Graph& body);

}  // namespace lockstep::passes
