// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  size_t rank = x.shape.rank();
  if (x.dtype != DType::F32) return violated("softmax_causal", "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  if (rank < 2 || x.shape[rank - 2] != x.shape[rank - 1])
    return violated("softmax_causal", "C2", fmt::format("the last two extents of {} are not equal", toString(x.shape)));
  return std::vector{x};
}

// The result is 0 where it is masked, so the gradient is too.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId y = g.results[0], dy = g.cotangents[0];
  return {b.mul(b.sub(dy, b.sum(b.mul(dy, y), -1, true)), y)};
}

// Masked elements are the lowest finite number for the maximum (infinities could give NaN) and exactly 0 after exp.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  ValueId x = b.make("where_causal", {operands[0]}, {{"fill", kLowest}});
  int64_t last = static_cast<int64_t>(b.shapeOf(x).rank()) - 1;
  ValueId maximum = b.make("reduce_max", {x}, {{"axes", std::vector{last}}, {"keep_dims", true}});
  ValueId power = b.make("where_causal", {b.make("exp", {b.sub(x, maximum)})}, {{"fill", 0.0}});
  return {b.div(power, b.sum(power, -1, true))};
}

std::vector<Tensor> evaluateSoftmaxCausal(const EvaluateContext& c) {
  const std::vector<double>& x = c.operands[0]->data;
  size_t n = static_cast<size_t>(c.results[0].shape.extent(c.results[0].shape.rank() - 1));
  Tensor out{c.results[0], std::vector<double>(x.size(), 0.0)};
  for (size_t row = 0; row < x.size() / n; ++row) {
    size_t begin = row * n, end = begin + row % n + 1;  // keys up to the query
    double maximum = *std::max_element(x.begin() + static_cast<ptrdiff_t>(begin), x.begin() + static_cast<ptrdiff_t>(end)), sum = 0;
    for (size_t i = begin; i < end; ++i) sum += out.data[i] = std::exp(x[i] - maximum);
    for (size_t i = begin; i < end; ++i) out.data[i] /= sum;
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape) {
    return OpCase{name, {{f32(std::move(shape)), -6, 6}}, {}, 3e-6, "WGSL exp: 3 + 2 |x| units in the last place, where |x| is small"};
  };
  return {make("one", {2, 3, 1, 1}), make("small", {2, 3, 8, 8}), make("odd", {2, 65, 65}), make("plain", {5, 5})};
}

}  // namespace

extern const OpDef kSoftmaxCausalOp;
const OpDef kSoftmaxCausalOp{
    .name = "softmax_causal",
    .summary = "Softmax over the last axis, of the elements whose last index is at most the one before it; the others are 0.",
    .constraints = std::vector<Constraint>{{"C1", "the operand is f32"}, {"C2", "the last two extents are equal"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSoftmaxCausal,
    .cases = cases,
};

}  // namespace lockstep::graph
