// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/ops/common.h"
#include "ir/ops/indexing.h"

namespace lockstep::graph {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis");
  if (x.dtype == DType::Bool) return violated("sort", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  LS_CHECK(checkAxis("sort", "C2", axis, x.shape.rank()));
  std::vector<int64_t> pairs = x.shape.extents();
  pairs.push_back(x.shape.extent(static_cast<size_t>(axis)));
  LS_CHECK(checkExtents("sort", "C3", pairs));
  return std::vector{x, i32(x.shape)};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  if (!g.cotangents[0].valid()) return {ValueId()};
  ValueId zero = g.builder.constant(0, Shape(g.builder.shapeOf(g.operands[0])));
  return {g.builder.make("scatter_add", {zero, g.results[1], g.cotangents[0]}, {{"axis", g.node.attributes.get<int64_t>("axis")}})};
}

// An element's place is the number of elements that come before it; equal ones keep their order. Counting compares all pairs of a line,
// without a barrier or a second level, which is quick for the lines of a few thousand elements that C3 admits.
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  ValueId x = operands[0], key = b.typeOf(x).dtype == DType::F32 ? b.make("ordering", {x}) : x;
  size_t axis = axisOf(node);
  auto first = static_cast<int64_t>(axis);
  Shape shape = b.shapeOf(x);
  int64_t length = shape.extent(axis);
  std::vector<int64_t> pairs = shape.extents(), mine = pairs, others = pairs, counted(pairs.size() + 1, 1);
  pairs.insert(pairs.begin() + first + 1, length);
  mine.insert(mine.begin() + first + 1, 1);
  others.insert(others.begin() + first, 1);
  auto paired = [&](ValueId value, const std::vector<int64_t>& as) { return b.broadcastTo(b.reshape(value, Shape(as)), Shape(pairs)); };
  auto numbered = [&](size_t at) {
    std::vector<int64_t> extents = counted;
    extents[at] = length;
    return paired(b.make("arange", {}, {{"n", length}, {"dtype", DType::I32}}), extents);
  };
  bool descending = node.attributes.get<bool>("descending");
  ValueId here = paired(key, mine), there = paired(key, others);
  ValueId ahead = b.make(descending ? "greater" : "less", {there, here}), same = b.make("equal", {there, here});
  ValueId there_number = numbered(axis + 1), here_number = numbered(axis);
  ValueId earlier = b.make("less", {there_number, here_number});
  ValueId tie = b.make("logical_and", {same, earlier});
  ValueId before = b.make("logical_or", {ahead, tie});
  ValueId counts = b.make("cast", {before}, {{"dtype", DType::I32}});
  ValueId place = b.make("sum", {counts}, {{"axes", std::vector{first + 1}}, {"keep_dims", false}});
  std::vector<int64_t> along(shape.rank(), 1);
  along[axis] = length;
  ValueId numbers = b.broadcastTo(b.reshape(b.make("arange", {}, {{"n", length}, {"dtype", DType::I32}}), Shape(along)), shape);
  ValueId indices = b.make("scatter_add", {b.constant(0, i32(shape)), place, numbers}, {{"axis", first}});
  return {b.make("take_along_axis", {x, indices}, {{"axis", first}}), indices};
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
  auto make = [](std::string_view name, TensorType type, int64_t axis, bool descending) {
    return OpCase{name, {{std::move(type), 0, 9}}, {{"axis", axis}, {"descending", descending}}, 0, kExactReason};
  };
  return {make("last", f32({4, 33}), 1, false),  make("first", f32({17, 5}), 0, true),   make("middle", f32({2, 9, 3}), 1, false),
          make("equal", i32({3, 40}), 1, false), make("equal_down", u32({40}), 0, true), make("one", f32({5, 1}), 1, false)};
}

}  // namespace

extern const OpDef kSortOp;
const OpDef kSortOp{
    .name = "sort",
    .summary =
        "The elements of each line along an axis in order, and where each one was; equal elements keep their order, NaN is the largest.",
    .constraints = std::vector<Constraint>{{"C1", "the operand has numbers"},
                                           {"C2", "the axis is within the rank"},
                                           {"C3", "the element count times the extent of the axis fits in 32 bits"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{{"axis", AttributeKind::Integer, "the axis that is sorted along"},
                                            {"descending", AttributeKind::Boolean, "largest first"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSort,
    .cases = cases,
};

}  // namespace lockstep::graph
