// SPDX-License-Identifier: Apache-2.0
// How the operands of a product lie in memory, which decides how it is loaded and what multiplies it.
#pragma once

#include <string_view>
#include <utility>

#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

inline constexpr int64_t kQuad = 4;

/// How an operand of a product is read. The space of its index is (batch, rows, columns).
struct QuadOperand {
  std::string_view name;  ///< a or b
  size_t operand = 0;     ///< of the node
  graph::Shape space;
  graph::IndexMap map;      ///< from an index of the space to one of the operand
  bool along_rows = false;  ///< neighbours in memory are neighbours along the rows, which are the last axis of the space then
  bool by_quads = false;    ///< and every quad is one of memory
};

/// Those of both operands.
std::pair<QuadOperand, QuadOperand> quadOperands(const graph::Graph& body, const ContractNode& contract);

}  // namespace lockstep::passes
