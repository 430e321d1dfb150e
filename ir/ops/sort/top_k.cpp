// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"
#include "ir/ops/support/largest_smallest.h"
#include "ir/ops/support/sort_lines.h"

namespace lockstep::graph::top_k_op {
namespace {

/// As many are found one after the other; for more of them, a long line is sorted, which is a few dozen kernels for any k.
constexpr int64_t kMostTaken = 32;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis"), k = c.attributes.get<int64_t>("k");
  if (!isNumber(x.dtype)) return violated("top_k", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  LS_CHECK(checkAxis("top_k", "C2", axis, x.shape.rank()));
  int64_t length = x.shape.extent(static_cast<size_t>(axis));
  if (k < 1 || k > length) return violated("top_k", "C3", fmt::format("k is {}, wanted 1 to the {} elements of axis {}", k, length, axis));
  std::vector<int64_t> extents = x.shape.extents();
  LS_CHECK(checkSortable("top_k", "C4", x.shape, axis));
  extents[static_cast<size_t>(axis)] = k;
  return std::vector{TensorType{x.dtype, Shape(extents)}, i32(Shape(extents))};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  if (!g.cotangents[0].valid()) return {ValueId()};
  ValueId zero = g.builder.constant(0, Shape(g.builder.shapeOf(g.operands[0])));
  return {g.builder.make("scatter_add", {zero, g.results[1], g.cotangents[0]}, {{"axis", g.node.attributes.get<int64_t>("axis")}})};
}

/// Each the best of those after the one before it: k times the elements are read, and none are sorted.
std::vector<ValueId> oneAfterTheOther(Builder& b, ValueId x, int64_t axis, int64_t k) {
  const Shape shape = b.shapeOf(x);
  const bool is_float = b.typeOf(x).dtype == DType::F32;
  const ValueId keys = is_float ? b.make("ordering", {x}) : x, places = placesAlong(b, shape, axis);
  const double lowest = b.typeOf(keys).dtype == DType::U32 ? 0.0 : INT32_MIN;
  // What has been taken is worse than any other: its key is the lowest, and its place is after the last one.
  const ValueId no_key = b.constant(lowest, b.typeOf(keys)), no_place = b.constant(INT32_MAX, b.typeOf(places));
  std::vector<ValueId> taken;
  Best left{keys, places};
  for (int64_t i = 0; i < k; ++i) {
    const Best best = bestAlong(b, left, axis, "greater");
    taken.push_back(best.place);
    const ValueId key = b.broadcastTo(best.key, shape), place = b.broadcastTo(best.place, shape);
    const ValueId is_tie = b.make("equal", {keys, key}), is_after = b.make("greater", {places, place});
    const ValueId stays = b.make("logical_or", {b.make("less", {keys, key}), b.make("logical_and", {is_tie, is_after})});
    left = {b.make("where", {stays, keys, no_key}), b.make("where", {stays, places, no_place})};
  }
  const ValueId chosen = k == 1 ? taken[0] : b.make("concat", taken, {{"axis", axis}});
  return {b.make("take_along_axis", {x, chosen}, {{"axis", axis}}), chosen};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  int64_t axis = node.attributes.get<int64_t>("axis"), k = node.attributes.get<int64_t>("k");
  if (k <= kMostTaken && b.shapeOf(operands[0]).extent(static_cast<size_t>(axis)) > kCounted)
    return oneAfterTheOther(b, operands[0], axis, k);
  std::vector<ValueId> sorted = b.makeAll("sort", {operands[0]}, {{"axis", axis}, {"descending", true}});
  for (ValueId& value : sorted) value = b.make("narrow", {value}, {{"axis", axis}, {"start", int64_t{0}}, {"length", k}});
  return sorted;
}

std::vector<Tensor> evaluateTopK(const EvaluateContext& c) {
  const Tensor& x = *c.operands[0];
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  int64_t length = x.type.shape.extent(axis), k = c.results[0].shape.extent(axis), stride = x.type.shape.strides()[axis];
  Tensor values{c.results[0], {}}, indices{c.results[1], {}};
  values.data.resize(static_cast<size_t>(values.type.shape.elementCount()));
  indices.data.resize(values.data.size());
  for (int64_t line = 0; line < x.type.shape.elementCount() / length; ++line) {
    int64_t outer = line / stride, inner = line % stride;
    auto at = [&](int64_t i) { return x.data[static_cast<size_t>((outer * length + i) * stride + inner)]; };
    std::vector<int64_t> left(static_cast<size_t>(length));
    std::iota(left.begin(), left.end(), 0);
    for (int64_t place = 0; place < k; ++place) {
      auto best = left.begin();
      for (auto i = left.begin(); i != left.end(); ++i) {
        if (at(*i) > at(*best) || (std::isnan(at(*i)) && !std::isnan(at(*best)))) best = i;
      }
      auto to = static_cast<size_t>((outer * k + place) * stride + inner);
      values.data[to] = at(*best);
      indices.data[to] = static_cast<double>(*best);
      left.erase(best);
    }
  }
  return {std::move(values), std::move(indices)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType type, int64_t axis, int64_t k) {
    return OpCase{name, {{std::move(type), 0, 9}}, {{"axis", axis}, {"k", k}}, 0, kExactReason};
  };
  return {make("last", f32({4, 33}), 1, 5),  make("first", f32({17, 5}), 0, 1),  make("middle", f32({2, 9, 3}), 1, 9),
          make("equal", i32({3, 40}), 1, 7), make("long", f32({2, 2053}), 1, 3), make("long_first", u32({1031, 3}), 0, 8)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "top_k",
    .summary =
        "The k largest elements of each line along an axis, largest first, and where each one was; of equal ones the first, NaN is the "
        "largest.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "k is at least 1 and at most the extent of the axis"},
                                            {"C4", kSortable}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis that is searched along"},
                                             {"k", AttributeKind::Integer, "how many"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateTopK,
    .cases = cases,
    .range = rangeOfSorted,
};

}  // namespace lockstep::graph::top_k_op
