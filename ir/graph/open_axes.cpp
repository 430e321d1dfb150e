// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/open_axes.h"

#include "ir/graph/op_def.h"

namespace lockstep::graph {

std::optional<int64_t> joinedAxis(int64_t a, int64_t b) {
  if (a == b) return a;
  if (a == kAnyInner && b != 0) return b;
  if (b == kAnyInner && a != 0) return a;
  return std::nullopt;
}

std::optional<OpenAxes> joinedAxes(const OpenAxes& a, const OpenAxes& b) {
  if (a.size() != b.size()) return std::nullopt;
  OpenAxes joined;
  for (size_t axis = 0; axis < a.size(); ++axis) {
    const std::optional<int64_t> inner = joinedAxis(a[axis], b[axis]);
    if (!inner) return std::nullopt;
    joined.push_back(*inner);
  }
  return joined;
}

std::vector<Opened> OpenContext::made(std::vector<ValueId> values, const OpenAxes& axes) const {
  std::vector<Opened> results;
  for (const ValueId result : builder.makeAll(*node.op->name, std::move(values), node.attributes)) results.push_back({result, axes});
  return results;
}

ValueId OpenContext::counts(int64_t axis_extent, int64_t inner) const {
  inner = fromFirst(inner, axis_extent, capacity);
  const ValueId position = builder.make("arange", {}, {{"n", capacity}, {"dtype", DType::I32}});
  const ValueId counted = builder.make("less", {position, builder.broadcastTo(builder.reshape(extent, Shape{1}), Shape{capacity})});
  const ValueId repeated =
      builder.broadcastTo(builder.reshape(counted, Shape{1, capacity, 1}), Shape{axis_extent / (capacity * inner), capacity, inner});
  return builder.reshape(repeated, Shape{axis_extent});
}

ValueId OpenContext::filled(const Opened& operand, size_t axis, double fill) const {
  if (operand.axes[axis] == 0) return operand.value;
  const TensorType type = builder.typeOf(operand.value);
  std::vector<int64_t> extents(type.shape.rank(), 1);
  extents[axis] = type.shape.extent(axis);
  const ValueId counted = builder.reshape(counts(type.shape.extent(axis), operand.axes[axis]), Shape(extents));
  return builder.make("where", {builder.broadcastTo(counted, type.shape), operand.value, builder.constant(fill, type)});
}

}  // namespace lockstep::graph
