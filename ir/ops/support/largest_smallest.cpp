// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/largest_smallest.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"
#include "ir/ops/support/lane_math.h"

namespace lockstep::graph {
namespace {

using Axes = std::vector<int64_t>;

/// A line up to which the elements stay in registers, so that they are read once however often they are asked for. Along other axes than
/// the last one they do not.
constexpr int64_t kLongestHeld = 16384;

/// i32 numbers 0, 1, ... in row-major order of `axes`, repeated along the others.
ValueId positions(Builder& b, const Shape& shape, const Axes& axes) {
  Axes reduced(shape.rank(), 1);
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = shape.extent(static_cast<size_t>(axis));
  ValueId numbers = b.make("arange", {}, {{"n", Shape(reduced).elementCount()}, {"dtype", DType::I32}});
  return b.broadcastTo(b.reshape(numbers, Shape(reduced)), shape);
}

Shape withoutAxis(const Shape& shape, int64_t axis) {
  std::vector<Dim> dims = shape.dims();
  dims.erase(dims.begin() + axis);
  return Shape(std::move(dims));
}

/// The first position over `axes` where x is the `extremum` (both with all axes). Keeps the axes.
ValueId firstPosition(Builder& b, ValueId x, ValueId extremum, const Axes& axes) {
  const Shape shape = b.shapeOf(x);
  int64_t count = 1;
  for (int64_t axis : axes) count *= shape.extent(static_cast<size_t>(axis));
  ValueId position = positions(b, shape, axes);
  ValueId equal = isExtremum(b, x, b.broadcastTo(extremum, shape));
  ValueId last = b.constant(static_cast<double>(count - 1), i32(shape));
  ValueId candidate = b.make("where", {equal, position, last});
  return b.make("reduce_min", {candidate}, {{"axes", axes}, {"keep_dims", true}});
}

/// A number whose comparison says which element is better; NaN is the best.
ValueId keyOf(Builder& b, ValueId x, std::string_view better) {
  if (b.typeOf(x).dtype != DType::F32) return x;
  const ValueId key = b.make("ordering", {x});
  if (better == "greater") return key;
  const TensorType type = b.typeOf(key);
  return b.make("where", {b.make("equal", {key, b.constant(INT32_MAX, type)}), b.constant(INT32_MIN, type), key});
}

}  // namespace

kernel::ValueId emitExtremum(kernel::Builder& builder, kernel::Op op, kernel::ValueId a, kernel::ValueId b) {
  const kernel::Type& type = builder.typeOf(a);
  if (type.isInteger()) return builder.make(op, {a, b});
  Lanes m(builder, type.width());
  return op == kernel::Op::Max ? m.larger(a, b) : m.smaller(a, b);
}

ValueId isExtremum(Builder& builder, ValueId x, ValueId extremum) {
  return builder.make(builder.typeOf(x).dtype == DType::F32 ? "same" : "equal", {x, extremum});
}

std::vector<ValueId> choiceGradient(const GradientContext& context, std::string_view chooses_a, std::string_view chooses_b) {
  Builder& b = context.builder;
  ValueId dy = context.cotangents[0], zero = b.constant(0, b.typeOf(dy));
  std::vector<ValueId> operands(context.operands.begin(), context.operands.end());
  ValueId only_a = b.make(chooses_a, operands), only_b = b.make(chooses_b, operands);
  return {b.make("where", {only_b, zero, dy}), b.make("where", {only_a, zero, dy})};
}

Result<std::vector<TensorType>> inferExtremum(std::string_view op, const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (!isNumber(x.dtype)) return violated(op, "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  return inferReduced(op, "C2", context);
}

std::vector<ValueId> extremumGradient(const GradientContext& context) {
  Builder& b = context.builder;
  ValueId x = context.operands[0];
  const Shape shape = b.shapeOf(x);
  const auto& axes = context.node.attributes.get<Axes>("axes");
  Shape kept = keptShape(shape, axes);
  ValueId first = firstPosition(b, x, b.reshape(context.results[0], kept), axes);
  ValueId position = positions(b, shape, axes);
  ValueId chosen = b.make("equal", {position, b.broadcastTo(first, shape)});
  ValueId dy = b.broadcastTo(b.reshape(context.cotangents[0], kept), shape);
  return {b.make("where", {chosen, dy, b.constant(0, shape)})};
}

std::vector<OpCase> extremumCases() {
  auto make = [](std::string_view name, TensorType type, Axes axes, bool keep, double lo = -2) {
    return OpCase{name, {{std::move(type), lo, 2}}, {{"axes", std::move(axes)}, {"keep_dims", keep}}, 0, kExactReason};
  };
  return {make("first", f32({6, 5, 37}), {0}, false), make("middle", f32({6, 5, 37}), {1}, true),
          make("last", f32({6, 5, 37}), {2}, true),   make("two", f32({6, 5, 37}), {0, 2}, false),
          make("all", f32({9, 131}), {0, 1}, false),  make("long_row", f32({3, 5003}), {1}, false),
          make("integer", i32({7, 33}), {1}, false),  make("unsigned", u32({7, 33}), {0}, true, 0)};
}

Result<std::vector<TensorType>> inferArgument(std::string_view op, const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (!isNumber(x.dtype)) return violated(op, "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  int64_t axis = context.attributes.get<int64_t>("axis");
  LS_CHECK(checkAxis(op, "C2", axis, x.shape.rank()));
  return std::vector{i32(withoutAxis(x.shape, axis))};
}

ValueId placesAlong(Builder& builder, const Shape& shape, int64_t axis) { return positions(builder, shape, {axis}); }

Graph bestCombine(DType key, std::string_view better) {
  return makeCombine(std::array{key, DType::I32}, [better](Builder& b, auto x, auto y) {
    const ValueId is_tie = b.make("equal", {y[0], x[0]}), is_before = b.make("less", {y[1], x[1]});
    const ValueId takes = b.make("logical_or", {b.make(better, {y[0], x[0]}), b.make("logical_and", {is_tie, is_before})});
    return std::vector{b.make("where", {takes, y[0], x[0]}), b.make("where", {takes, y[1], x[1]})};
  });
}

Best bestAlong(Builder& builder, Best elements, int64_t axis, std::string_view better) {
  std::vector<int64_t> extents = builder.shapeOf(elements.key).extents();
  extents[static_cast<size_t>(axis)] = 1;
  const std::string combine = print(bestCombine(builder.typeOf(elements.key).dtype, better));
  const std::vector<ValueId> best =
      builder.makeAll("associative_reduce", {elements.key, elements.place}, {{"axis", axis}, {"combine", combine}});
  return {builder.reshape(best[0], Shape(extents)), builder.reshape(best[1], Shape(extents))};
}

std::vector<ValueId> decomposeArgument(Builder& builder, const Node& node, ValueId x, std::string_view reduction) {
  int64_t axis = node.attributes.get<int64_t>("axis");
  const Axes axes{axis};
  const Shape whole = builder.shapeOf(x), shape = withoutAxis(whole, axis);
  const auto at = static_cast<size_t>(axis);
  if (whole.extent(at) > 1 && (whole.strides()[at] > 1 || whole.extent(at) > kLongestHeld)) {
    const std::string_view better = reduction == "reduce_max" ? "greater" : "less";
    const Best best = bestAlong(builder, {keyOf(builder, x, better), placesAlong(builder, whole, axis)}, axis, better);
    return {builder.reshape(best.place, shape)};
  }
  ValueId extremum = builder.make(reduction, {x}, {{"axes", axes}, {"keep_dims", true}});
  ValueId first = firstPosition(builder, x, extremum, axes);
  return {builder.reshape(first, shape)};
}

std::vector<Tensor> evaluateArgument(const EvaluateContext& context, bool (*better)(double candidate, double best)) {
  ElementReader x(*context.operands[0]);
  int64_t axis = context.node.attributes.get<int64_t>("axis");
  int64_t extent = context.operands[0]->type.shape.extent(static_cast<size_t>(axis));
  return evaluateByIndex(context, [&](std::vector<int64_t> index) {
    index.insert(index.begin() + axis, 0);
    int64_t best = 0;
    double value = x(index);
    for (int64_t i = 1; i < extent && !std::isnan(value); ++i) {
      index[static_cast<size_t>(axis)] = i;
      if (!better(x(index), value) && !std::isnan(x(index))) continue;
      best = i;
      value = x(index);
    }
    return static_cast<double>(best);
  });
}

std::vector<OpCase> argumentCases() {
  auto make = [](std::string_view name, TensorType type, int64_t axis, double lo, double hi) {
    return OpCase{name, {{std::move(type), lo, hi}}, {{"axis", axis}}, 0, "positions are counted"};
  };
  return {make("first", f32({6, 5, 37}), 0, -2, 2),   make("middle", f32({6, 5, 37}), 1, -2, 2), make("last", f32({6, 5, 37}), 2, -2, 2),
          make("long_row", f32({3, 5003}), 1, -2, 2), make("ties", i32({7, 33}), 1, -2, 2),      make("unsigned", u32({7, 33}), 0, 0, 3),
          make("vector", f32({9}), 0, -2, 2),         make("one", f32({4, 1}), 1, -2, 2)};
}

std::optional<std::vector<Opened>> openArgument(const OpenContext& c, bool is_max) {
  const Opened& x = c.operands[0];
  const auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  if (x.axes[axis] != 0 && !countsFirst(x.axes[axis], c.shapeOf(0).extent(axis), c.capacity)) return std::nullopt;
  const std::optional<IntegerRange> range = rangeOf(c.builder.typeOf(x.value).dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  const double worst = range ? static_cast<double>(is_max ? range->lo : range->hi) : is_max ? -infinity : infinity;
  OpenAxes axes = x.axes;
  axes.erase(axes.begin() + static_cast<ptrdiff_t>(axis));
  return c.made({c.filled(x, axis, worst)}, axes);
}

}  // namespace lockstep::graph
