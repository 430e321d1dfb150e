// SPDX-License-Identifier: Apache-2.0
// What ops that take an index share.
#pragma once

#include <optional>
#include <vector>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

/// The attribute `axis`.
size_t axisOf(const Node& node);

/// `idx` has the rank of `x` and its extents along all axes but `axis`.
Status checkAlike(std::string_view op, std::string_view label, const Shape& x, const Shape& idx, int64_t axis);

/// Operand 0 at `position` with the axis replaced by `wanted` (i32), or 0 where that is outside. The read itself is clamped into bounds, so
/// a value that is not wanted is never multiplied (0 * inf is no 0).
kernel::ValueId emitSelected(ElementEmitter& emitter, size_t axis, kernel::ValueId wanted, std::vector<kernel::ValueId> position);

/// The same in the evaluator: operand 0 at each index of the result, with the axis replaced by wanted(index).
template <class Wanted>
std::vector<Tensor> evaluateSelected(const EvaluateContext& c, size_t axis, Wanted&& wanted) {
  ElementReader element(*c.operands[0]);
  auto extent = static_cast<double>(c.operands[0]->type.shape.extent(axis));
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    double place = wanted(index);
    if (place < 0 || place >= extent) return 0.0;
    index[axis] = static_cast<int64_t>(place);
    return element(index);
  });
}

/// Of an op whose operand 1 counts along `axis` of operand 0.
IndexUse indexAlongAxis(const Graph& graph, const Node& node);

using KnownRange = std::optional<IntegerRange>;
/// `range` where no number of it is beyond the element type, else rangeOf(dtype): integers wrap.
KnownRange unwrapped(DType dtype, IntegerRange range);
/// Of an op whose only result are places along the attribute `axis` of operand 0.
std::vector<KnownRange> rangeOfPlaces(const RangeContext& context);
/// Of an op whose results are elements of operand 0 and their places along the attribute `axis`.
std::vector<KnownRange> rangeOfSorted(const RangeContext& context);
/// `function` of the ranges of two integer operands; nothing is known for f32.
template <class Function>
std::vector<KnownRange> combinedRange(const RangeContext& c, Function&& function) {
  if (!c.operands[0] || !c.operands[1]) return {KnownRange()};
  return {unwrapped(c.graph.typeOf(c.node.results[0]).dtype, function(*c.operands[0], *c.operands[1]))};
}

}  // namespace lockstep::graph
