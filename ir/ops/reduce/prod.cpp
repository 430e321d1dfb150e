// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"

namespace lockstep::graph::prod_op {
namespace {

using Axes = std::vector<int64_t>;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (!isNumber(x.dtype)) return violated("prod", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  return inferReduced("prod", "C2", c);
}

/// The axes that stay, then those that are reduced.
Axes reducedLast(size_t rank, const Axes& axes) {
  Axes order;
  for (int64_t axis : allAxes(rank)) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) order.push_back(axis);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  return order;
}

constexpr int64_t kSquare = 32;

/// [rows, n]: the product of the others of the row, in which the element itself counts as 1; the product of all divided by the element
/// would be wrong where that is 0. Takes n^2 multiplications a row.
ValueId exclusiveSquare(Builder& b, ValueId x, int64_t rows, int64_t n) {
  Shape square{rows, n, n};
  ValueId repeated = b.broadcastTo(b.reshape(x, {rows, 1, n}), square);
  ValueId numbers = b.make("arange", {}, {{"n", n}, {"dtype", DType::I32}});
  ValueId row = b.broadcastTo(b.reshape(numbers, {1, n, 1}), square);
  ValueId column = b.broadcastTo(b.reshape(numbers, {1, 1, n}), square);
  ValueId itself = b.make("equal", {row, column});
  ValueId one = b.constant(1, square);
  ValueId others = b.make("where", {itself, one, repeated});
  return b.make("prod", {others}, {{"axes", Axes{2}}, {"keep_dims", false}});
}

/// The same with about kSquare n multiplications for a long row: the others are those of the element's own group of kSquare, times the
/// products of the other groups.
ValueId exclusive(Builder& b, ValueId x, int64_t rows, int64_t n) {
  if (n <= kSquare) return exclusiveSquare(b, x, rows, n);
  const int64_t groups = (n + kSquare - 1) / kSquare, padded = groups * kSquare;
  if (padded != n) x = b.make("pad", {x}, {{"axis", int64_t{1}}, {"before", int64_t{0}}, {"after", padded - n}, {"value", 1.0}});
  Shape grouped{rows, groups, kSquare};
  ValueId products = b.make("prod", {b.reshape(x, grouped)}, {{"axes", Axes{2}}, {"keep_dims", false}});
  ValueId other_groups = b.broadcastTo(b.reshape(exclusive(b, products, rows, groups), {rows, groups, 1}), grouped);
  ValueId own_group = b.reshape(exclusiveSquare(b, b.reshape(x, {rows * groups, kSquare}), rows * groups, kSquare), grouped);
  ValueId all = b.reshape(b.mul(own_group, other_groups), {rows, padded});
  if (padded == n) return all;
  return b.make("narrow", {all}, {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"length", n}});
}

// The derivative by an element is the product of all others.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  const Shape shape = b.shapeOf(g.operands[0]);
  Axes order = reducedLast(shape.rank(), g.node.attributes.get<Axes>("axes"));
  ValueId moved = b.permute(g.operands[0], order);
  const Shape moved_shape = b.shapeOf(moved);
  int64_t rows = b.shapeOf(g.results[0]).elementCount(), n = shape.elementCount() / rows;
  ValueId others = exclusive(b, b.reshape(moved, {rows, n}), rows, n);
  ValueId dy = b.broadcastTo(b.reshape(g.cotangents[0], {rows, 1}), {rows, n});
  ValueId dx = b.reshape(b.mul(others, dy), moved_shape);
  Axes back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {b.permute(dx, std::move(back))};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType type, Axes axes, bool keep, double lo, double hi) {
    return OpCase{name, {{std::move(type), lo, hi}}, {{"axes", std::move(axes)}, {"keep_dims", keep}}, 3e-6, "a rounding a factor"};
  };
  return {make("first", f32({6, 5, 7}), {0}, false, -2, 2),       make("middle", f32({6, 5, 7}), {1}, true, -2, 2),
          make("last", f32({6, 5, 7}), {2}, false, -2, 2),        make("two", f32({4, 5, 3}), {0, 2}, false, -1.5, 1.5),
          make("all", f32({3, 5}), {0, 1}, false, -1.5, 1.5),     make("long_row", f32({2, 60}), {1}, false, 0.9, 1.1),
          make("grouped", f32({101, 2}), {0}, false, 0.95, 1.05), make("integer", i32({7, 6}), {1}, false, -3, 3)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "prod",
    .summary = "Product over some axes; the gradient is exact where elements are 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "axes are ascending, unique and within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are multiplied"},
                                             {"keep_dims", AttributeKind::Boolean, "keep the reduced axes with extent 1"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ReduceLowering{
        .axes = [](const Graph&, const Node& node) { return node.attributes.get<std::vector<int64_t>>("axes"); },
        .keep_dims = [](const Node& node) { return node.attributes.get<bool>("keep_dims"); },
        .neutral = [](DType) { return 1.0; },
        .combine = [](kernel::Builder& b, kernel::ValueId acc, kernel::ValueId x) { return b.make(kernel::Op::Mul, {acc, x}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateReduced(c, [](double accumulated, double x) { return accumulated * x; }); },
    .cases = cases,
};

}  // namespace lockstep::graph::prod_op
