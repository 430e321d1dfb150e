// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/row_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

Result<std::vector<TensorType>> inferRows(std::string_view op, const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.dtype != DType::F32) return violated(op, "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  if (x.shape.rank() == 0) return violated(op, "C2", "operand is a scalar and has no last axis");
  return std::vector{x};
}

std::vector<Tensor> evaluateRows(const EvaluateContext& context, void (*function)(std::span<double> row, size_t number)) {
  Tensor out{context.results[0], context.operands[0]->data};
  size_t columns = static_cast<size_t>(out.type.shape.extent(out.type.shape.rank() - 1));
  for (size_t number = 0; number < out.data.size() / columns; ++number) {
    function(std::span(out.data).subspan(number * columns, columns), number);
  }
  return {std::move(out)};
}

std::vector<ValueId> softmaxGradient(const GradientContext& context) {
  Builder& b = context.builder;
  ValueId y = context.results[0], dy = context.cotangents[0];
  return {b.mul(b.sub(dy, b.sum(b.mul(dy, y), -1, true)), y)};
}

ValueId rowMaximum(Builder& b, ValueId x) {
  const int64_t last = static_cast<int64_t>(b.shapeOf(x).rank()) - 1;
  return b.make("reduce_max_number", {x}, {{"axes", std::vector{last}}, {"keep_dims", true}});
}

ValueId normalised(Builder& b, ValueId elements) {
  const ValueId sum = b.sum(elements, -1, true);
  return b.mul(elements, b.div(b.constant(1, b.typeOf(sum)), sum));
}

void softmaxRow(std::span<double> row) {
  double maximum = *std::ranges::max_element(row), sum = 0;
  for (double& x : row) sum += x = std::exp(x - maximum);
  for (double& x : row) x /= sum;
}

OpCase softmaxCase(std::string_view name, Shape shape) {
  return {name, {{f32(std::move(shape)), -6, 6}}, {}, 3e-6, "WGSL exp: 3 + 2 |x| units in the last place, where |x| is small"};
}

}  // namespace lockstep::graph
