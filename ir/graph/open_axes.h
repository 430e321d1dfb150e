// SPDX-License-Identifier: Apache-2.0
// Tensors that are larger than what counts of them: a program for a dynamic extent of up to `capacity` serves each smaller one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/graph.h"

namespace lockstep::graph {

/// Per axis: 0 when all of its positions count. Otherwise it is open, and position i counts when (i / inner) % capacity < extent: inner is
/// 1 for the dynamic axis itself, and k when it was joined with k positions of axes after it. kAnyInner: every choice of positions is as
/// good, as all elements along the axis are equal or independent random numbers.
using OpenAxes = std::vector<int64_t>;
inline constexpr int64_t kAnyInner = -1;

inline bool isOpen(const OpenAxes& axes) {
  for (const int64_t inner : axes) {
    if (inner != 0) return true;
  }
  return false;
}
/// What both say of axes that correspond; nothing where they contradict each other.
std::optional<int64_t> joinedAxis(int64_t a, int64_t b);
/// Element by element, along all axes.
std::optional<OpenAxes> joinedAxes(const OpenAxes& a, const OpenAxes& b);
/// The first positions count, where all choices were as good: for what differs from position to position.
inline int64_t fromFirst(int64_t inner, int64_t extent, int64_t capacity) { return inner == kAnyInner ? extent / capacity : inner; }
/// Whether the positions that count are the first ones.
inline bool countsFirst(int64_t inner, int64_t extent, int64_t capacity) { return inner == kAnyInner || inner * capacity == extent; }

/// A value of the graph that is made, and which of its axes are open.
struct Opened {
  ValueId value;
  OpenAxes axes;
};

/// What the rule of an op sees (OpDef::open). Its operands have no open axes but those that it is told of.
struct OpenContext {
  Builder& builder;
  const Node& node;  ///< without its operands in the builder's graph
  std::span<const Opened> operands;
  int64_t capacity;
  ValueId extent;  ///< i32[], in the builder's graph

  [[nodiscard]] const Shape& shapeOf(size_t operand) const { return builder.shapeOf(operands[operand].value); }
  /// The node with these operands; all results have these axes.
  [[nodiscard]] std::vector<Opened> made(std::vector<ValueId> values, const OpenAxes& axes) const;
  /// bool [shape.extent(axis)]: whether a position of an open axis counts.
  [[nodiscard]] ValueId counts(int64_t axis_extent, int64_t inner) const;
  /// The operand with `fill` where a position of that axis does not count; itself where the axis is not open.
  [[nodiscard]] ValueId filled(const Opened& operand, size_t axis, double fill) const;
};
/// The results; nothing where the op has no such form.
using OpenFn = std::optional<std::vector<Opened>> (*)(const OpenContext&);

}  // namespace lockstep::graph
