// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/index_operands.h"

#include <fmt/format.h>

namespace lockstep::graph {

size_t axisOf(const Node& node) { return static_cast<size_t>(node.attributes.get<int64_t>("axis")); }

Status checkAlike(std::string_view op, std::string_view label, const Shape& x, const Shape& idx, int64_t axis) {
  bool alike = x.rank() == idx.rank();
  for (size_t i = 0; alike && i < x.rank(); ++i) alike = static_cast<int64_t>(i) == axis || x[i] == idx[i];
  if (alike) return Success{};
  return violated(op, label, fmt::format("the index {} and {} differ along another axis than {}", toString(idx), toString(x), axis));
}

kernel::ValueId emitSelected(ElementEmitter& e, size_t axis, kernel::ValueId wanted, std::vector<kernel::ValueId> position) {
  kernel::Builder& b = e.builder();
  const TensorType& type = e.graph().typeOf(e.node().operands[0]);
  auto extent = static_cast<uint32_t>(type.shape.extent(axis));
  kernel::ValueId place = b.convert(b.types().u32(), wanted);  // a negative index becomes a large one
  position[axis] = b.make(kernel::Op::Min, {place, b.u32(extent - 1)});
  kernel::ValueId value = e.operandAt(0, std::move(position));
  return b.make(kernel::Op::Select, {kernelConstant(b, type.dtype, 0), value, b.make(kernel::Op::Lt, {place, b.u32(extent)})});
}

IndexUse indexAlongAxis(const Graph& graph, const Node& node) {
  return {.operand = 1, .extent = graph.shapeOf(node.operands[0]).extent(axisOf(node)), .places = "places of that axis"};
}

KnownRange unwrapped(DType dtype, IntegerRange range) {
  const KnownRange all = rangeOf(dtype);
  return all && range.lo >= all->lo && range.hi <= all->hi ? range : all;
}

std::vector<KnownRange> rangeOfPlaces(const RangeContext& c) {
  return {IntegerRange{0, c.graph.shapeOf(c.node.operands[0]).extent(axisOf(c.node)) - 1}};
}

std::vector<KnownRange> rangeOfSorted(const RangeContext& c) { return {c.operands[0], rangeOfPlaces(c).front()}; }

}  // namespace lockstep::graph
