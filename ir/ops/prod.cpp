// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

using Axes = std::vector<int64_t>;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype == DType::Bool) return violated("prod", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
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

// The derivative by an element is the product of all others. The product over the element would be wrong where that is 0, so each
// element has its own product, in which it counts as 1: n^2 multiplications for n elements, in one reduction.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  const Shape shape = b.shapeOf(g.operands[0]);
  Axes order = reducedLast(shape.rank(), g.node.attributes.get<Axes>("axes"));
  ValueId moved = b.permute(g.operands[0], order);
  const Shape moved_shape = b.shapeOf(moved);
  int64_t rows = b.shapeOf(g.results[0]).elementCount(), n = shape.elementCount() / rows;
  Shape square{rows, n, n};
  ValueId repeated = b.broadcastTo(b.reshape(moved, {rows, 1, n}), square);
  ValueId numbers = b.make("arange", {}, {{"n", n}, {"dtype", DType::I32}});
  ValueId row = b.broadcastTo(b.reshape(numbers, {1, n, 1}), square);
  ValueId column = b.broadcastTo(b.reshape(numbers, {1, 1, n}), square);
  ValueId itself = b.make("equal", {row, column});
  ValueId others = b.make("where", {itself, b.constant(1, square), repeated});
  ValueId products = b.make("prod", {others}, {{"axes", Axes{2}}, {"keep_dims", false}});
  ValueId dy = b.reshape(g.cotangents[0], {rows, 1});
  ValueId dx = b.reshape(b.mul(products, b.broadcastTo(dy, {rows, n})), moved_shape);
  Axes back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return {b.permute(dx, std::move(back))};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType type, Axes axes, bool keep, double lo, double hi) {
    return OpCase{name, {{std::move(type), lo, hi}}, {{"axes", std::move(axes)}, {"keep_dims", keep}}, 3e-6, "a rounding a factor"};
  };
  return {make("first", f32({6, 5, 7}), {0}, false, -2, 2),   make("middle", f32({6, 5, 7}), {1}, true, -2, 2),
          make("last", f32({6, 5, 7}), {2}, false, -2, 2),    make("two", f32({4, 5, 3}), {0, 2}, false, -1.5, 1.5),
          make("all", f32({3, 5}), {0, 1}, false, -1.5, 1.5), make("long_row", f32({2, 60}), {1}, false, 0.9, 1.1),
          make("integer", i32({7, 6}), {1}, false, -3, 3)};
}

}  // namespace

extern const OpDef kProdOp;
const OpDef kProdOp{
    .name = "prod",
    .summary = "Product over some axes; the gradient is exact where elements are 0 and takes n^2 multiplications for n factors.",
    .constraints = std::vector<Constraint>{{"C1", "the operand has numbers"}, {"C2", "axes are ascending, unique and within the rank"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are multiplied"},
                                            {"keep_dims", AttributeKind::Boolean, "keep the reduced axes with extent 1"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ReduceLowering{
        .axes = [](const Graph&, const Node& node) { return node.attributes.get<std::vector<int64_t>>("axes"); },
        .keep_dims = [](const Node& node) { return node.attributes.get<bool>("keep_dims"); },
        .identity = [](kernel::Builder& b, const TensorType& type) { return kernelConstant(b, type.dtype, 1); },
        .combine = [](kernel::Builder& b, kernel::ValueId acc, kernel::ValueId x) { return b.make(kernel::Op::Mul, {acc, x}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateReduced(c, [](double accumulated, double x) { return accumulated * x; }); },
    .cases = cases,
};

}  // namespace lockstep::graph
