// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::emit;
using detail::normaliseAxis;
using detail::raise;

namespace {

std::vector<int64_t> reducedAxes(std::string_view op, const Tensor& x, const Axes& wanted, const Where& where) {
  detail::Trace::require(op, where);
  std::vector<int64_t> axes;
  if (!wanted.list()) {
    axes.resize(static_cast<size_t>(x.rank(where)));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  for (int64_t axis : *wanted.list()) axes.push_back(normaliseAxis(op, axis, x, where));
  std::ranges::sort(axes);
  if (const auto twice = std::ranges::adjacent_find(axes); twice != axes.end())
    raise(fmt::format("{}.axes", op), fmt::format("axis {} is named twice", *twice), {x}, where, "name each axis once; -1 is the last one");
  return axes;
}

Tensor reduce(std::string_view op, Tensor x, const Axes& wanted, const ReduceOptions& options, const Where& where) {
  std::vector<int64_t> axes = reducedAxes(op, x, wanted, where);
  if (axes.empty()) return x;
  return emit(op, {x}, {{"axes", std::move(axes)}, {"keep_dims", options.keep_dims}}, where);
}

/// Truth values as numbers, whose largest says whether any holds and whose smallest whether all do.
Tensor holds(std::string_view op, std::string_view reduction, Tensor x, const Axes& wanted, const ReduceOptions& options,
             const Where& where) {
  const std::vector<int64_t> axes = reducedAxes(op, x, wanted, where);
  if (x.dtype(where) != DType::Bool) {
    raise(fmt::format("{}.C1", op), fmt::format("operand is {}, wanted bool", toString(x.type(where))), {x}, where, "compare first");
  }
  return cast(reduce(reduction, cast(x, DType::I32, where), axes, options, where), DType::Bool, where);
}

Tensor argument(std::string_view op, Tensor x, std::optional<int64_t> axis, const Where& where) {
  detail::Trace::require(op, where);
  if (!axis) return emit(op, {reshape(x, {-1}, where)}, {{"axis", int64_t{0}}}, where);
  return emit(op, {x}, {{"axis", normaliseAxis(op, *axis, x, where)}}, where);
}

}  // namespace

Tensor sum(Tensor x, const Axes& axes, ReduceOptions options, Where where) { return reduce("sum", x, axes, options, where); }

Tensor mean(Tensor x, const Axes& axes, ReduceOptions options, Where where) {
  const std::vector<int64_t> reduced = reducedAxes("mean", x, axes, where);
  if (x.dtype(where) != DType::F32) {
    raise("mean.C1", fmt::format("operand is {}, wanted f32", toString(x.type(where))), {x}, where,
          "cast(x, ls::DType::F32) makes other numbers and bool f32");
  }
  int64_t count = 1;
  for (int64_t axis : reduced) count *= x.extent(axis, where);
  return mul(sum(x, reduced, options, where), 1.0 / static_cast<double>(count), where);
}

Tensor prod(Tensor x, const Axes& axes, ReduceOptions options, Where where) { return reduce("prod", x, axes, options, where); }
Tensor reduce_max(Tensor x, const Axes& axes, ReduceOptions options, Where where) { return reduce("reduce_max", x, axes, options, where); }
Tensor reduce_min(Tensor x, const Axes& axes, ReduceOptions options, Where where) { return reduce("reduce_min", x, axes, options, where); }

Tensor logsumexp(Tensor x, const Axes& axes, ReduceOptions options, Where where) {
  const std::vector<int64_t> reduced = reducedAxes("logsumexp", x, axes, where);
  if (x.dtype(where) != DType::F32)
    raise("logsumexp.C1", fmt::format("operand is {}, wanted f32", toString(x.type(where))), {x}, where, "cast it to f32");
  const Tensor largest = stop_gradient(reduce_max(x, reduced, {.keep_dims = true}, where), where);
  const Tensor middle = clamp(largest, -3e38, 3e38, where);  // infinity minus infinity would be NaN
  const Tensor total = log(sum(exp(sub(x, middle, where), where), reduced, {.keep_dims = true}, where), where);
  const Tensor kept = add(total, middle, where);
  if (options.keep_dims) return kept;
  std::vector<int64_t> extents;
  for (int64_t axis = 0; axis < x.rank(where); ++axis) {
    if (!std::ranges::binary_search(reduced, axis)) extents.push_back(x.extent(axis, where));
  }
  return reshape(kept, extents, where);
}

Tensor any(Tensor x, const Axes& axes, ReduceOptions options, Where where) { return holds("any", "reduce_max", x, axes, options, where); }
Tensor all(Tensor x, const Axes& axes, ReduceOptions options, Where where) { return holds("all", "reduce_min", x, axes, options, where); }

Tensor argmax(Tensor x, std::optional<int64_t> axis, Where where) { return argument("argmax", x, axis, where); }
Tensor argmin(Tensor x, std::optional<int64_t> axis, Where where) { return argument("argmin", x, axis, where); }

Tensor cumsum(Tensor x, int64_t axis, bool reverse, Where where) {
  detail::Trace::require("cumsum", where);
  return emit("cumsum", {x}, {{"axis", normaliseAxis("cumsum", axis, x, where)}, {"reverse", reverse}}, where);
}

}  // namespace lockstep
