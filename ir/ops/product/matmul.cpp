// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "ir/ops/support/common.h"

namespace lockstep::graph::matmul_op {
namespace {

Shape leadingOf(const Shape& shape) { return Shape(std::vector<Dim>(shape.dims().begin(), shape.dims().end() - 2)); }

// Operands [..., M, K] and [K, N] (all leading axes are rows) or [..., K, N] (leading axes broadcast: one product per batch).
Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &a = c.operands[0], &b = c.operands[1];
  if (a.dtype != DType::F32 || b.dtype != DType::F32)
    return violated("matmul", "C1", fmt::format("operands are {} and {}, wanted f32", toString(a), toString(b)));
  size_t ra = a.shape.rank(), rb = b.shape.rank();
  if (ra < 2 || rb < 2)
    return violated("matmul", "C2", fmt::format("operands are {} and {}, both need at least two axes", toString(a), toString(b)));
  if (a.shape[ra - 1] != b.shape[rb - 2]) {
    return violated("matmul", "C3",
                    fmt::format("inner extents differ: {} has {} columns and {} has {} rows", toString(a.shape), a.shape.extent(ra - 1),
                                toString(b.shape), b.shape.extent(rb - 2)));
  }
  std::optional<Shape> leading = broadcastShapes(leadingOf(a.shape), leadingOf(b.shape));
  if (!leading) {
    return violated("matmul", "C4", fmt::format("leading axes of {} and {} do not broadcast", toString(a.shape), toString(b.shape)));
  }
  std::vector<Dim> dims = leading->dims();
  dims.push_back(a.shape[ra - 2]);
  dims.push_back(b.shape[rb - 1]);
  Shape shape(std::move(dims));
  LS_CHECK(checkExtents("matmul", "C5", shape.extents()));
  return std::vector{f32(std::move(shape))};
}

/// The sum of left[..., M, I] right[..., I, N] over the leading axes along which a tensor of shape `target` [..., M, N] was repeated.
/// They join the inner axis, so that no product a batch is made and summed.
ValueId productOver(Builder& b, ValueId left, ValueId right, const Shape& leading, const Shape& target) {
  auto regrouped = [&](ValueId x, bool inner_is_last) {
    int64_t rows = b.shapeOf(x).extent(b.shapeOf(x).rank() - 2), columns = b.shapeOf(x).extent(b.shapeOf(x).rank() - 1);
    std::vector<int64_t> whole, kept, order, repeated, shape;
    size_t added = leading.rank() + 2 - target.rank(), missing = leading.rank() + 2 - b.shapeOf(x).rank();
    int64_t inner = inner_is_last ? columns : rows;
    for (size_t axis = 0; axis < leading.rank(); ++axis) {
      bool summed = leading.extent(axis) != 1 && (axis < added || target.extent(axis - added) == 1);
      whole.push_back(summed ? leading.extent(axis) : axis < missing ? 1 : b.shapeOf(x).extent(axis - missing));
      (summed ? repeated : kept).push_back(static_cast<int64_t>(axis));
      if (summed) inner *= leading.extent(axis);
    }
    whole.insert(whole.end(), {rows, columns});
    for (int64_t axis : kept) {
      order.push_back(axis);
      if (axis >= static_cast<int64_t>(added)) shape.push_back(whole[static_cast<size_t>(axis)]);
    }
    auto rank = static_cast<int64_t>(leading.rank());
    if (inner_is_last) order.push_back(rank);
    order.insert(order.end(), repeated.begin(), repeated.end());
    if (!inner_is_last) order.push_back(rank);
    order.push_back(rank + 1);
    shape.insert(shape.end(), {inner_is_last ? rows : inner, inner_is_last ? inner : columns});
    return b.reshape(b.permute(b.broadcastTo(x, Shape(whole)), order), Shape(shape));
  };
  ValueId first = regrouped(left, true), second = regrouped(right, false);
  return b.reshape(b.make("matmul", {first, second}), target);
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], w = g.operands[1], dy = g.cotangents[0];
  Shape leading = leadingOf(b.shapeOf(dy)), x_shape = b.shapeOf(x), w_shape = b.shapeOf(w);
  ValueId wt = b.swapLastAxes(w);
  // A second operand of two axes needs no leading axes to be multiplied by all rows.
  ValueId dx = leadingOf(x_shape) == leading ? b.make("matmul", {dy, wt}) : productOver(b, dy, wt, leading, x_shape);
  ValueId xt = b.swapLastAxes(x);
  ValueId dw = leadingOf(w_shape) == leading ? b.make("matmul", {xt, dy}) : productOver(b, xt, dy, leading, w_shape);
  return {dx, dw};
}

/// From an index of [leading..., i, j] to one of an operand whose leading axes broadcast.
IndexMap broadcastMap(const Shape& operand, size_t rank) {
  IndexMap map;
  size_t added = rank - operand.rank();
  for (size_t axis = 0; axis < operand.rank(); ++axis)
    map.source.push_back(operand.extent(axis) == 1 ? IndexExpr{} : axisExpr(static_cast<int32_t>(axis + added)));
  return map;
}

ContractShape contractShape(const Graph& graph, const Node& node) {
  const Shape &a = graph.shapeOf(node.operands[0]), &b = graph.shapeOf(node.operands[1]), &y = graph.shapeOf(node.results[0]);
  ContractShape shape;
  shape.n = b.extent(b.rank() - 1);
  shape.k = a.extent(a.rank() - 1);
  shape.m = a.extent(a.rank() - 2);
  bool rows = b.rank() == 2;
  for (size_t i = 0; i + 2 < y.rank(); ++i) (rows ? shape.m : shape.batch) *= y.extent(i);
  // (b, m, k), (b, k, n) and (b, m, n) are the row-major indices of the tensors regrouped to three axes.
  auto operandMap = [&](const Shape& regrouped, const Shape& operand) {
    std::vector<Dim> dims = leadingOf(y).dims();
    dims.insert(dims.end(), operand.dims().end() - 2, operand.dims().end());
    Shape whole(std::move(dims));
    return compose(reshapeMap(regrouped, whole), broadcastMap(operand, whole.rank()), whole);
  };
  shape.a = operandMap(Shape{shape.batch, shape.m, shape.k}, a);
  shape.b = rows ? reshapeMap(Shape{shape.batch, shape.k, shape.n}, b) : operandMap(Shape{shape.batch, shape.k, shape.n}, b);
  return shape;
}

/// The operand with `axis` of `k` elements cut into parts along a new first axis; zeros fill the last part up.
ValueId cutInner(Builder& b, ValueId operand, int64_t axis, int64_t parts) {
  int64_t k = b.shapeOf(operand).extent(static_cast<size_t>(axis)), length = (k + parts - 1) / parts;
  if (parts * length > k)
    operand = b.make("pad", {operand}, {{"axis", axis}, {"before", int64_t{0}}, {"after", parts * length - k}, {"value", 0.0}});
  std::vector<int64_t> extents = b.shapeOf(operand).extents(), order{axis};
  extents[static_cast<size_t>(axis)] = length;
  extents.insert(extents.begin() + axis, parts);
  for (int64_t i = 0; i < static_cast<int64_t>(extents.size()); ++i) {
    if (i != axis) order.push_back(i);
  }
  operand = b.reshape(operand, Shape(extents));
  return axis == 0 ? operand : b.permute(operand, order);
}

ValueId partialProducts(Builder& b, const Node&, std::span<const ValueId> operands, int64_t parts) {
  ValueId left = operands[0], right = operands[1];
  if (b.shapeOf(right).rank() == 2) {  // all leading axes are rows
    const Shape& shape = b.shapeOf(left);
    int64_t k = shape.extent(shape.rank() - 1);
    left = b.reshape(left, Shape{shape.elementCount() / k, k});
  }
  // Leading axes are aligned at the last one, so both operands need equally many of them before one is put in front.
  size_t rank = std::max(b.shapeOf(left).rank(), b.shapeOf(right).rank());
  auto widened = [&](ValueId operand) {
    std::vector<int64_t> extents = b.shapeOf(operand).extents();
    extents.insert(extents.begin(), rank - extents.size(), 1);
    return b.reshape(operand, Shape(extents));
  };
  auto axes = static_cast<int64_t>(rank);
  return b.make("matmul", {cutInner(b, widened(left), axes - 1, parts), cutInner(b, widened(right), axes - 2, parts)});
}

ValueId sumOfRows(Builder& b, const Node&, std::span<const ValueId> stacks) {
  const Shape left = b.shapeOf(stacks[0]), right = b.shapeOf(stacks[1]);
  if (left.rank() != 3 || right.rank() != 3) return {};
  const int64_t rows = left.extent(0), m = left.extent(1), k = left.extent(2), n = right.extent(2);
  const ValueId wide = b.reshape(b.permute(stacks[0], {1, 0, 2}), Shape{m, rows * k});
  return b.make("matmul", {wide, b.reshape(stacks[1], Shape{rows * k, n})});
}

/// A stack on the left of one matrix; others are no more than a product per row.
ValueId lift(const LiftContext& c) {
  Builder& b = c.builder;
  if (!c.stacked[0]) return {};
  if (!c.stacked[1]) return b.shapeOf(c.operands[1]).rank() == 2 ? b.make("matmul", {c.operands[0], c.operands[1]}) : ValueId{};
  return b.shapeOf(c.operands[0]).rank() == b.shapeOf(c.operands[1]).rank() ? b.make("matmul", {c.operands[0], c.operands[1]}) : ValueId{};
}

std::optional<std::vector<Opened>> openMatmul(const OpenContext& c) {
  Opened a = c.operands[0], b = c.operands[1];
  const size_t ra = a.axes.size(), rb = b.axes.size(), rank = std::max(ra, rb);
  const std::optional<int64_t> inner = joinedAxis(a.axes[ra - 1], b.axes[rb - 2]);
  if (!inner) return std::nullopt;
  a.axes[ra - 1] = b.axes[rb - 2] = *inner;
  OpenAxes axes(rank, 0);
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    const size_t from_last = rank - axis;
    const bool has_a = from_last <= ra && c.shapeOf(0).extent(ra - from_last) > 1,
               has_b = from_last <= rb && c.shapeOf(1).extent(rb - from_last) > 1;
    const int64_t of_a = has_a ? a.axes[ra - from_last] : 0, of_b = has_b ? b.axes[rb - from_last] : 0;
    const std::optional<int64_t> joined = has_a && has_b ? joinedAxis(of_a, of_b) : std::optional(has_a ? of_a : of_b);
    if (!joined) return std::nullopt;
    axes[axis] = *joined;
  }
  axes[rank - 2] = a.axes[ra - 2];
  axes[rank - 1] = b.axes[rb - 1];
  // Both, as 0 times what does not count may be NaN.
  return c.made({c.filled(a, ra - 1, 0), c.filled(b, rb - 2, 0)}, axes);
}

std::vector<Tensor> evaluateMatmul(const EvaluateContext& c) {
  const Tensor &a = *c.operands[0], &b = *c.operands[1];
  int64_t k = a.type.shape.extent(a.type.shape.rank() - 1), n = b.type.shape.extent(b.type.shape.rank() - 1),
          m = a.type.shape.extent(a.type.shape.rank() - 2);
  Tensor out{c.results[0], {}};
  out.data.reserve(static_cast<size_t>(out.type.shape.elementCount()));
  std::vector<int64_t> leading = leadingOf(out.type.shape).extents(), index(leading.size(), 0);
  // Where the matrix of an operand begins: aligned at the last leading axis, the first one along axes of extent 1.
  auto matrixOf = [&](const Tensor& tensor) {
    std::vector<int64_t> strides = tensor.type.shape.strides();
    size_t added = leading.size() + 2 - strides.size();
    const double* matrix = tensor.data.data();
    for (size_t axis = 0; axis + 2 < strides.size(); ++axis) {
      if (tensor.type.shape.extent(axis) != 1) matrix += index[axis + added] * strides[axis];
    }
    return matrix;
  };
  do {
    const double *left = matrixOf(a), *right = matrixOf(b);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += left[i * k + l] * right[l * n + j];
        out.data.push_back(sum);
      }
    }
  } while (nextIndex(index, leading));
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape a, Shape b) {
    return OpCase{name, {{f32(std::move(a)), -1, 1}, {f32(std::move(b)), -1, 1}}, {}, 2e-6, "sums of at most 1000 products"};
  };
  return {make("tiny", {5, 7}, {7, 3}),
          make("square", {64, 64}, {64, 64}),
          make("odd", {33, 129}, {129, 65}),
          make("dot", {1, 1000}, {1000, 1}),
          make("outer", {130, 1}, {1, 67}),
          make("rows", {2, 3, 17, 19}, {19, 23}),
          make("batched", {2, 3, 33, 17}, {2, 3, 17, 29}),
          make("broadcast_a", {1, 3, 5, 7}, {4, 3, 7, 6}),
          make("broadcast_b", {2, 3, 4, 5, 6}, {3, 1, 6, 7}),
          make("broadcast_both", {3, 1, 5, 7}, {2, 7, 4}),
          make("left_matrix", {5, 7}, {3, 7, 4}),
          make("vec4", {40, 32}, {32, 96})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "matmul",
    .summary = "Matrix product over the last two axes; leading axes broadcast.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "operands have at least two axes"},
                                            {"C3", "the inner extents are equal"},
                                            {"C4", "the leading axes broadcast against each other"},
                                            {"C5", "the element count of the result is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"a", "b"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ContractLowering{.shape = contractShape, .partial = partialProducts, .sum_of_rows = sumOfRows},
    .alias = NoAlias{},
    .evaluate = evaluateMatmul,
    .cases = cases,
    .mixed = MixedRole::Product,
    .lift = lift,
    .open = openMatmul,
};

}  // namespace lockstep::graph::matmul_op
