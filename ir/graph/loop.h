// SPDX-License-Identifier: Apache-2.0
// The op `loop`: a body that runs once per position of its slices, each time with what the last one carried on.
//
// Operands are the first values of the carries, then those of carries that are held in one place, then stacks that are sliced along their
// first axis, then what every iteration reads as it is. Results are, for each carry, the stack of all its values (one row more than there
// are iterations), then what the held ones are at the end, then for each other result of the body the stack of its values. Stacks are in
// the order of positions also where the loop runs from the last one to the first.
//
// A held carry is for what is large and changes in a few rows per iteration: a state of the body, of which update_rows makes the next
// version in its bytes. Nobody can ask for its older values, so gradients do not pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/graph.h"
#include "ir/support/result.h"

namespace lockstep::graph {

/// Leaves of the body, all of them inputs but the held ones.
std::string carryName(size_t i);    ///< "carry0"
std::string heldName(size_t i);     ///< "held0", a state
std::string sliceName(size_t i);    ///< "slice0"
std::string captureName(size_t i);  ///< "capture0"
/// Outputs of the body: the next carries, results with the names of these; the next versions of what is held; then results "result0", ...
std::string resultName(size_t i);

/// A row of a stack.
TensorType rowType(const TensorType& stack);
TensorType stackType(const TensorType& row, int64_t rows);

/// What a loop says, read off its node.
struct LoopForm {
  int64_t iterations = 1;
  size_t carries = 0, held = 0, slices = 0, captures = 0;
  bool reverse = false;  ///< from the last position to the first
  NestedGraph graph;

  explicit LoopForm(const Node& node);
  LoopForm(size_t operands, const Attributes& attributes);
  [[nodiscard]] const Graph& body() const { return *graph; }
  [[nodiscard]] size_t firstSlice() const { return carries + held; }  ///< among the operands
  [[nodiscard]] size_t firstCapture() const { return carries + held + slices; }
  [[nodiscard]] size_t firstResult() const { return carries + held; }  ///< among the results of the node and the outputs of the body
  [[nodiscard]] int64_t position(int64_t round) const { return reverse ? iterations - 1 - round : round; }
  // Of the stack of a carry's values: the row that an iteration at a position reads, that it writes, the one before the first iteration and
  // the one after the last.
  [[nodiscard]] int64_t rowRead(int64_t position) const { return reverse ? position + 1 : position; }
  [[nodiscard]] int64_t rowWritten(int64_t position) const { return reverse ? position : position + 1; }
  [[nodiscard]] int64_t firstRow() const { return reverse ? iterations : 0; }
  [[nodiscard]] int64_t lastRow() const { return reverse ? 0 : iterations; }
};

/// The leaf of that name. Invalid where there is none.
ValueId findLeaf(const Graph& graph, std::string_view name);

/// A loop; the numbers of slices and captures follow from the operands.
struct LoopOperands {
  std::vector<ValueId> carries, held, slices, captures;
};
std::vector<ValueId> makeLoop(Builder& builder, const LoopOperands& operands, int64_t iterations, bool reverse, Graph body);

/// The results of the loop by its body once per iteration, without a loop.
std::vector<ValueId> unrollLoop(Builder& builder, const Node& node, std::span<const ValueId> operands);

/// A row of a stack and a stack without some of its rows, as views of it.
ValueId rowOf(Builder& builder, ValueId stack, int64_t row);
ValueId rowsOf(Builder& builder, ValueId stack, int64_t first, int64_t count);

/// Appends the body to a graph, with these values in place of its leaves; returns its outputs.
std::vector<ValueId> inlineGraph(Builder& builder, const Graph& body, const std::map<std::string, ValueId, std::less<>>& leaves);

}  // namespace lockstep::graph
