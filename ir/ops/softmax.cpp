// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

// The axis is the last one; the front end permutes for others.
Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype != DType::F32) return violated("softmax", "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  if (x.shape.rank() == 0) return violated("softmax", "C2", "operand is a scalar and has no last axis");
  return std::vector{x};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId y = g.results[0], dy = g.cotangents[0];
  return {b.mul(b.sub(dy, b.sum(b.mul(dy, y), -1, true)), y)};
}

// exp(x - m) / sum(exp(x - m)), m the row's maximum: no overflow, and the sum is at least 1.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  ValueId x = operands[0];
  int64_t last = static_cast<int64_t>(b.shapeOf(x).rank()) - 1;
  ValueId maximum = b.make("reduce_max", {x}, {{"axes", std::vector{last}}, {"keep_dims", true}});
  ValueId power = b.make("exp", {b.sub(x, maximum)});
  return {b.div(power, b.sum(power, -1, true))};
}

std::vector<Tensor> evaluateSoftmax(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  size_t columns = static_cast<size_t>(out.type.shape.extent(out.type.shape.rank() - 1));
  for (size_t row = 0; row < out.data.size(); row += columns) {
    double maximum = out.data[row], sum = 0;
    for (size_t i = 0; i < columns; ++i) maximum = std::max(maximum, out.data[row + i]);
    for (size_t i = 0; i < columns; ++i) sum += out.data[row + i] = std::exp(out.data[row + i] - maximum);
    for (size_t i = 0; i < columns; ++i) out.data[row + i] /= sum;
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape) {
    return OpCase{name, {{f32(std::move(shape)), -6, 6}}, {}, 3e-6, "WGSL exp: 3 + 2 |x| units in the last place, where |x| is small"};
  };
  return {make("rows", {6, 13, 70}), make("one_row", {11}), make("one_column", {5, 1}), make("long", {3, 1500})};
}

}  // namespace

extern const OpDef kSoftmaxOp;
const OpDef kSoftmaxOp{
    .name = "softmax",
    .summary = "Exponentials normalised to sum 1 over the last axis.",
    .constraints = std::vector<Constraint>{{"C1", "the operand is f32"}, {"C2", "the operand has an axis"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSoftmax,
    .cases = cases,
};

}  // namespace lockstep::graph
