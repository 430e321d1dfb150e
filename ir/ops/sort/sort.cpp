// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/largest_smallest.h"
#include "ir/ops/support/sort_lines.h"

namespace lockstep::graph::sort_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis");
  if (!isNumber(x.dtype)) return violated("sort", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  LS_CHECK(checkAxis("sort", "C2", axis, x.shape.rank()));
  LS_CHECK(checkSortable("sort", "C3", x.shape, axis));
  return std::vector{x, i32(x.shape)};
}

ValueId taken(Builder& b, ValueId x, ValueId indices, int64_t axis) { return b.make("take_along_axis", {x, indices}, {{"axis", axis}}); }

/// The element at each place moves to place `order` of its line; `order` has every place once.
ValueId movedTo(Builder& b, ValueId x, ValueId order, int64_t axis) {
  if (b.shapeOf(x).extent(static_cast<size_t>(axis)) > kCounted) {
    std::vector<ValueId> inverse = b.makeAll("sort", {order}, {{"axis", axis}, {"descending", false}});
    return taken(b, x, inverse[1], axis);
  }
  ValueId zero = b.constant(0, b.typeOf(x));
  return b.make("scatter_add", {zero, order, x}, {{"axis", axis}});
}

std::vector<ValueId> gradient(const GradientContext& g) {
  if (!g.cotangents[0].valid()) return {ValueId()};
  return {movedTo(g.builder, g.cotangents[0], g.results[1], g.node.attributes.get<int64_t>("axis"))};
}

/// Where the elements of each line are in ascending order. An element's place is the number of elements that come before it; equal ones
/// keep their order.
ValueId orderByCounting(Builder& b, ValueId keys, int64_t axis) {
  const Shape shape = b.shapeOf(keys);
  const auto at = static_cast<size_t>(axis);
  std::vector<int64_t> pairs = shape.extents(), mine = pairs, others = pairs;
  pairs.insert(pairs.begin() + axis + 1, shape.extent(at));
  mine.insert(mine.begin() + axis + 1, 1);
  others.insert(others.begin() + axis, 1);
  ValueId here = b.broadcastTo(b.reshape(keys, Shape(mine)), Shape(pairs));
  ValueId there = b.broadcastTo(b.reshape(keys, Shape(others)), Shape(pairs));
  ValueId here_number = placesAlong(b, Shape(pairs), axis), there_number = placesAlong(b, Shape(pairs), axis + 1);
  ValueId ahead = b.make("less", {there, here}), same = b.make("equal", {there, here});
  ValueId earlier = b.make("less", {there_number, here_number});
  ValueId tie = b.make("logical_and", {same, earlier});
  ValueId before = b.make("logical_or", {ahead, tie});
  ValueId counts = b.make("cast", {before}, {{"dtype", DType::I32}});
  ValueId place = b.make("sum", {counts}, {{"axes", std::vector{axis + 1}}, {"keep_dims", false}});
  return movedTo(b, placesAlong(b, shape, axis), place, axis);
}

/// The same for a line of any length.
ValueId orderByMerging(Builder& b, ValueId keys, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  const int64_t length = b.shapeOf(keys).extent(at), runs = (length + kRun - 1) / kRun, padded = runs * kRun;
  // What is added orders last, also among equal keys.
  const double most = b.typeOf(keys).dtype == DType::U32 ? 4294967295.0 : 2147483647.0;
  keys = b.make("pad", {keys}, {{"axis", axis}, {"before", int64_t{0}}, {"after", padded - length}, {"value", most}});
  const Shape whole = b.shapeOf(keys);
  std::vector<int64_t> cut = whole.extents();
  cut[at] = kRun;
  cut.insert(cut.begin() + axis, runs);
  ValueId in_run = b.reshape(keys, Shape(cut));
  ValueId order = orderByCounting(b, in_run, axis + 1);
  ValueId before_run = b.mul(placesAlong(b, Shape(cut), axis), b.constant(kRun, i32(Shape(cut))));
  ValueId numbers = b.reshape(b.add(order, before_run), whole);
  keys = b.reshape(taken(b, in_run, order, axis + 1), whole);
  for (int64_t run = kRun; run < padded; run *= 2) {
    ValueId merged = b.make("merge_order", {keys}, {{"axis", axis}, {"run", run}});
    keys = taken(b, keys, merged, axis);
    numbers = taken(b, numbers, merged, axis);
  }
  return b.make("narrow", {numbers}, {{"axis", axis}, {"start", int64_t{0}}, {"length", length}});
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  ValueId x = operands[0], keys = b.typeOf(x).dtype == DType::F32 ? b.make("ordering", {x}) : x;
  const int64_t axis = node.attributes.get<int64_t>("axis");
  if (node.attributes.get<bool>("descending")) {
    const double most = b.typeOf(keys).dtype == DType::U32 ? 4294967295.0 : -1.0;
    keys = b.make("sub", {b.constant(most, b.typeOf(keys)), keys});  // never overflows
  }
  const bool counted = b.shapeOf(x).extent(axisOf(node)) <= kCounted;
  ValueId indices = counted ? orderByCounting(b, keys, axis) : orderByMerging(b, keys, axis);
  return {taken(b, x, indices, axis), indices};
}

std::vector<Tensor> evaluateSort(const EvaluateContext& c) {
  const Tensor& x = *c.operands[0];
  size_t axis = axisOf(c.node);
  bool descending = c.node.attributes.get<bool>("descending");
  int64_t length = x.type.shape.extent(axis), stride = x.type.shape.strides()[axis], count = x.type.shape.elementCount();
  Tensor values{c.results[0], x.data}, indices{c.results[1], x.data};
  auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  for (int64_t line = 0; line < count / length; ++line) {
    int64_t start = line / stride * stride * length + line % stride;
    auto at = [&](int64_t i) { return x.data[static_cast<size_t>(start + i * stride)]; };
    std::vector<int64_t> order(static_cast<size_t>(length));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return descending ? less(at(j), at(i)) : less(at(i), at(j)); });
    for (int64_t i = 0; i < length; ++i) {
      auto to = static_cast<size_t>(start + i * stride);
      values.data[to] = at(order[static_cast<size_t>(i)]);
      indices.data[to] = static_cast<double>(order[static_cast<size_t>(i)]);
    }
  }
  return {std::move(values), std::move(indices)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType type, int64_t axis, bool descending, double hi = 9) {
    return OpCase{name, {{std::move(type), 0, hi}}, {{"axis", axis}, {"descending", descending}}, 0, kExactReason};
  };
  return {make("last", f32({4, 33}), 1, false),         make("first", f32({17, 5}), 0, true),   make("middle", f32({2, 9, 3}), 1, false),
          make("equal", i32({3, 40}), 1, false),        make("equal_down", u32({40}), 0, true), make("one", f32({5, 1}), 1, false),
          make("long", f32({1100, 2}), 0, false, 4000), make("long_down", i32({1300}), 0, true)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sort",
    .summary =
        "The elements of each line along an axis in order, and where each one was; equal elements keep their order, NaN is the largest.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "the axis is within the rank"}, {"C3", kSortable}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis that is sorted along"},
                                             {"descending", AttributeKind::Boolean, "largest first"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSort,
    .cases = cases,
    .range = rangeOfSorted,
};

}  // namespace lockstep::graph::sort_op
