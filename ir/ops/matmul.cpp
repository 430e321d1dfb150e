// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

// Operands [..., M, K] and [K, N] (all leading axes are rows) or [..., K, N] (equal leading axes: one product a batch).
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
  if (rb > 2) {
    bool equal = ra == rb;
    for (size_t i = 0; equal && i + 2 < ra; ++i) equal = a.shape[i] == b.shape[i];
    if (!equal) return violated("matmul", "C4", fmt::format("leading axes of {} and {} differ", toString(a.shape), toString(b.shape)));
  }
  std::vector<Dim> dims = a.shape.dims();
  dims.back() = b.shape[rb - 1];
  Shape shape(std::move(dims));
  LS_CHECK(checkExtents("matmul", "C5", shape.extents()));
  return std::vector{f32(std::move(shape))};
}

/// [..., M, N] as [rows, N].
Shape rowsShape(const Shape& shape) {
  int64_t columns = shape.extent(shape.rank() - 1);
  return Shape{shape.elementCount() / columns, columns};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], w = g.operands[1], dy = g.cotangents[0];
  ValueId dx = b.make("matmul", {dy, b.swapLastAxes(w)});
  if (b.shapeOf(w).rank() > 2) return {dx, b.make("matmul", {b.swapLastAxes(x), dy})};
  // All leading axes are rows, so that no product a batch is made and summed.
  ValueId rows = b.reshape(x, rowsShape(b.shapeOf(x)));
  ValueId dy_rows = b.reshape(dy, rowsShape(b.shapeOf(dy)));
  return {dx, b.make("matmul", {b.swapLastAxes(rows), dy_rows})};
}

ContractShape contractShape(const Graph& graph, const Node& node) {
  const Shape &a = graph.shapeOf(node.operands[0]), &b = graph.shapeOf(node.operands[1]), &y = graph.shapeOf(node.results[0]);
  ContractShape shape;
  size_t rank = a.rank();
  shape.n = b.extent(b.rank() - 1);
  shape.k = a.extent(rank - 1);
  shape.m = a.extent(rank - 2);
  bool rows = b.rank() == 2;
  for (size_t i = 0; i + 2 < rank; ++i) (rows ? shape.m : shape.batch) *= a.extent(i);
  // (b, m, k), (b, k, n) and (b, m, n) are the row-major indices of the tensors regrouped to three axes.
  shape.a = reshapeMap(Shape{shape.batch, shape.m, shape.k}, a);
  shape.b = reshapeMap(Shape{shape.batch, shape.k, shape.n}, b);
  shape.result = reshapeMap(Shape{shape.batch, shape.m, shape.n}, y);
  return shape;
}

std::vector<Tensor> evaluateMatmul(const EvaluateContext& c) {
  const Tensor &a = *c.operands[0], &b = *c.operands[1];
  int64_t k = a.type.shape.extent(a.type.shape.rank() - 1), n = b.type.shape.extent(b.type.shape.rank() - 1),
          m = a.type.shape.extent(a.type.shape.rank() - 2);
  int64_t batches = a.type.shape.elementCount() / (m * k);
  bool shared = b.type.shape.rank() == 2;
  Tensor out{c.results[0], std::vector<double>(static_cast<size_t>(batches * m * n), 0.0)};
  for (int64_t batch = 0; batch < batches; ++batch) {
    const double* left = a.data.data() + batch * m * k;
    const double* right = b.data.data() + (shared ? 0 : batch * k * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += left[i * k + l] * right[l * n + j];
        out.data[static_cast<size_t>((batch * m + i) * n + j)] = sum;
      }
    }
  }
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
          make("vec4", {40, 32}, {32, 96})};
}

}  // namespace

extern const OpDef kMatmulOp;
const OpDef kMatmulOp{
    .name = "matmul",
    .summary = "Matrix product over the last two axes; a second operand of two axes is shared by all leading axes.",
    .constraints = std::vector<Constraint>{{"C1", "operands are f32"},
                                           {"C2", "operands have at least two axes"},
                                           {"C3", "the inner extents are equal"},
                                           {"C4", "a second operand of more than two axes has the leading axes of the first"},
                                           {"C5", "the element count of the result fits in 32 bits"}},
    .operands = std::vector<std::string_view>{"a", "b"},
    .attributes = std::vector<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ContractLowering{.shape = contractShape},
    .alias = NoAlias{},
    .evaluate = evaluateMatmul,
    .cases = cases,
};

}  // namespace lockstep::graph
