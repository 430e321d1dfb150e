// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/trained_rows.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// The place of each element along an axis: i / inner mod extent.
ValueId placeAlong(Builder& b, ValueId elements, const Shape& parameter, int64_t axis) {
  const TensorType& type = b.typeOf(elements);
  const auto whole = [&](int64_t value) { return b.constant(static_cast<double>(value), type); };
  int64_t inner = 1;
  for (size_t next = static_cast<size_t>(axis) + 1; next < parameter.rank(); ++next) inner *= parameter.extent(next);
  const int64_t extent = parameter.extent(static_cast<size_t>(axis));
  const ValueId outer = inner == 1 ? elements : b.make("div", {elements, whole(inner)});
  // Nothing stands before the first axis; padding counts on.
  if (axis == 0) return outer;
  return b.make("sub", {outer, b.make("mul", {b.make("div", {outer, whole(extent)}), whole(extent)})});
}

}  // namespace

ValueId isTrained(Builder& b, const Shape& parameter, const std::vector<RowRange>& rows, const Shape& as) {
  const ValueId elements = b.reshape(b.make("arange", {}, {{"n", as.elementCount()}, {"dtype", DType::I32}}), as);
  ValueId trained;
  for (const RowRange& range : rows) {
    const ValueId place = placeAlong(b, elements, parameter, range.axis);
    const auto whole = [&](int64_t value) { return b.constant(static_cast<double>(value), b.typeOf(place)); };
    const ValueId from = b.make("greater_equal", {place, whole(range.first)}),
                  below = b.make("less", {place, whole(range.first + range.count)});
    const ValueId inside = b.make("logical_and", {from, below});
    trained = trained.valid() ? b.make("logical_or", {trained, inside}) : inside;
  }
  return trained;
}

}  // namespace lockstep::passes
