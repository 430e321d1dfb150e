// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/index.h"

#include <fmt/format.h>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::emit;
using detail::normaliseAxis;
using detail::raise;

Tensor take_along_axis(Tensor x, Tensor indices, int64_t axis, Where where) {
  detail::Trace::require("take_along_axis", where);
  axis = normaliseAxis("take_along_axis", axis, x, where);
  // The axis itself takes no part in broadcasting.
  std::vector<int64_t> left = x.shape(where).extents(), right = indices.shape(where).extents();
  if (left.size() == right.size()) {
    auto at = static_cast<size_t>(axis);
    int64_t from = left[at], to = right[at];
    left[at] = right[at] = 1;
    if (std::optional<Shape> common = graph::broadcastShapes(Shape(left), Shape(right))) {
      std::vector<int64_t> extents = common->extents();
      extents[at] = from;
      x = detail::broadcast(x, Shape(extents), where);
      extents[at] = to;
      indices = detail::broadcast(indices, Shape(extents), where);
    }
  }
  return emit("take_along_axis", {x, indices}, {{"axis", axis}}, where);
}

Tensor gather(Tensor x, int64_t axis, Tensor indices, Where where) {
  detail::Trace::require("gather", where);
  axis = normaliseAxis("gather", axis, x, where);
  const Shape shape = x.shape(where), wanted = indices.shape(where);
  if (shape.rank() != wanted.rank())
    raise("gather.C1", fmt::format("the indices {} and {} have different ranks", toString(wanted), toString(shape)), {x, indices}, where,
          "give indices with as many axes as the tensor");
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (static_cast<int64_t>(i) == axis || shape[i] == wanted[i]) continue;
    if (wanted.extent(i) > shape.extent(i))
      raise("gather.C2", fmt::format("the indices {} reach beyond {} along axis {}", toString(wanted), toString(shape), i), {x, indices},
            where, "narrow the indices along that axis");
    x = narrow(x, static_cast<int64_t>(i), 0, wanted.extent(i), where);
  }
  return emit("take_along_axis", {x, indices}, {{"axis", axis}}, where);
}

Tensor index_select(Tensor x, int64_t axis, Tensor indices, Where where) {
  detail::Trace::require("index_select", where);
  return emit("index_select", {x, indices}, {{"axis", normaliseAxis("index_select", axis, x, where)}}, where);
}

Tensor index_add(Tensor x, int64_t axis, Tensor indices, Tensor source, Where where) {
  detail::Trace::require("index_add", where);
  axis = normaliseAxis("index_add", axis, x, where);
  return add(x, segment_sum(source, indices, x.extent(axis, where), axis, where), where);
}

Tensor segment_sum(Tensor source, Tensor indices, int64_t segments, int64_t axis, Where where) {
  detail::Trace::require("segment_sum", where);
  axis = normaliseAxis("segment_sum", axis, source, where);
  return emit("segment_sum", {source, indices}, {{"axis", axis}, {"segments", segments}}, where);
}

Tensor scatter_add(Tensor x, int64_t axis, Tensor indices, Tensor source, Where where) {
  detail::Trace::require("scatter_add", where);
  return emit("scatter_add", {x, indices, source}, {{"axis", normaliseAxis("scatter_add", axis, x, where)}}, where);
}

Tensor write_rows(Tensor x, Tensor rows, Tensor at, int64_t axis, Where where) {
  detail::Trace::require("write_rows", where);
  return emit("write_rows", {x, rows, at}, {{"axis", normaliseAxis("write_rows", axis, x, where)}}, where);
}

Tensor narrow(Tensor x, int64_t axis, Tensor start, int64_t length, Where where) {
  detail::Trace::require("narrow", where);
  axis = normaliseAxis("narrow", axis, x, where);
  const int64_t extent = x.extent(axis, where);
  if (length < 1 || length > extent)
    raise("narrow.C2", fmt::format("{} elements do not lie in the {} elements of axis {}", length, extent, axis), {x}, where,
          fmt::format("take 1 to {} elements", extent));
  const graph::TensorType type = start.type(where);
  const bool is_one = type.shape.rank() == 0;
  const bool is_own = axis > 0 && type.shape.rank() == 1 && type.shape.extent(0) == x.extent(0, where);
  if (type.dtype != DType::I32 || (!is_one && !is_own)) {
    raise("narrow.start",
          fmt::format("the start is {}, wanted i32[]{}", toString(type), axis > 0 ? fmt::format(" or i32[{}]", x.extent(0, where)) : ""),
          {x, start}, where, "give one place, or one for each entry of the first axis");
  }
  if (is_one) return index_select(x, axis, add(arange(length, DType::I32, where), start, where), where);
  std::vector<int64_t> starts(static_cast<size_t>(x.rank(where)), 1), steps = starts;
  starts[0] = type.shape.extent(0);
  steps[static_cast<size_t>(axis)] = length;
  const Tensor places = add(reshape(start, starts, where), reshape(arange(length, DType::I32, where), steps, where), where);
  return take_along_axis(x, places, axis, where);
}

Sorted sort(Tensor x, int64_t axis, bool descending, Where where) {
  detail::Trace& trace = detail::Trace::require("sort", where);
  axis = normaliseAxis("sort", axis, x, where);
  std::vector<Tensor> sorted = trace.emitAll("sort", std::span(&x, 1), {{"axis", axis}, {"descending", descending}}, where);
  return {sorted[0], sorted[1]};
}

Sorted top_k(Tensor x, int64_t k, int64_t axis, Where where) {
  detail::Trace& trace = detail::Trace::require("top_k", where);
  axis = normaliseAxis("top_k", axis, x, where);
  std::vector<Tensor> largest = trace.emitAll("top_k", std::span(&x, 1), {{"axis", axis}, {"k", k}}, where);
  return {largest[0], largest[1]};
}

}  // namespace lockstep
