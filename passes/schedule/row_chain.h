// SPDX-License-Identifier: Apache-2.0
// The order of the work in a group of kind "row_chain", and what of its rows lies in workgroup memory meanwhile.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

/// Elements of each row in workgroup memory: those of a reduction or a contraction, or the left operand of one.
struct ChainArray {
  graph::ValueId value;  ///< whose elements these are; of a left operand, as the contraction sees them
  int64_t columns = 1;   ///< per row; of a left operand filled up with zeros to whole fours
  size_t first = 0;      ///< the step that writes it
  size_t last = 0;       ///< the last one that reads it
  int64_t offset = 0;    ///< in elements of a row: where it begins. Arrays that are not needed at the same time share their places
  bool is_left = false;  ///< a left operand: these have a memory of their own, of vectors
};

enum class ChainWork : uint8_t {
  Load,     ///< the left operand of a contraction is made
  Product,  ///< a contraction
  Reduce,   ///< a reduction of each row
  Store     ///< results of the group
};

/// Invocations wait for each other where one step needs what another one writes.
struct ChainStep {
  ChainWork work = ChainWork::Store;
  graph::NodeId node = {};           ///< the contraction or the reduction
  size_t made = 0;                   ///< the array that is written; of Store none
  size_t left = 0;                   ///< Product: the array of its left operand
  std::vector<size_t> results = {};  ///< Store: outputs of the body, all of as many columns
  std::vector<size_t> reads = {};    ///< arrays
  int64_t columns = 1;               ///< elements per row that are made or stored
};

struct RowChain {
  static constexpr int64_t kVector = 4;  ///< elements of a left operand that are read at once
  int64_t rows = 0;
  std::vector<ChainStep> steps;
  std::vector<ChainArray> arrays;
  int64_t made_elements = 0, left_elements = 0;  ///< of a row, of all arrays of either memory
};

/// Nothing where some row would need another one: the left operands and the reductions are of rows that lie side by side in memory, one
/// after the other, and the right operands are made of nothing but what is there before.
std::optional<RowChain> findRowChain(const graph::Graph& body);

/// The contraction of a step.
graph::ContractShape contractOf(const graph::Graph& body, graph::NodeId node);

}  // namespace lockstep::passes
