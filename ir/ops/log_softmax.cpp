// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

// The axis is the last one; the front end permutes for others.
Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype != DType::F32) return violated("log_softmax", "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  if (x.shape.rank() == 0) return violated("log_softmax", "C2", "operand is a scalar and has no last axis");
  return std::vector{x};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId dy = g.cotangents[0];
  return {b.sub(dy, b.mul(b.make("exp", {g.results[0]}), b.sum(dy, -1, true)))};
}

// x - m - log(sum(exp(x - m))), m the row's maximum: no overflow for any finite row.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  ValueId x = operands[0];
  int64_t last = static_cast<int64_t>(b.shapeOf(x).rank()) - 1;
  ValueId maximum = b.make("reduce_max", {x}, {{"axes", std::vector{last}}, {"keep_dims", true}});
  ValueId shifted = b.sub(x, maximum);
  return {b.sub(shifted, b.make("log", {b.sum(b.make("exp", {shifted}), -1, true)}))};
}

std::vector<Tensor> evaluateLogSoftmax(const EvaluateContext& c) {
  Tensor out{c.results[0], c.operands[0]->data};
  size_t columns = static_cast<size_t>(out.type.shape.extent(out.type.shape.rank() - 1));
  for (size_t row = 0; row < out.data.size(); row += columns) {
    double maximum = out.data[row], sum = 0;
    for (size_t i = 0; i < columns; ++i) maximum = std::max(maximum, out.data[row + i]);
    for (size_t i = 0; i < columns; ++i) sum += std::exp(out.data[row + i] - maximum);
    for (size_t i = 0; i < columns; ++i) out.data[row + i] = out.data[row + i] - maximum - std::log(sum);
  }
  return {std::move(out)};
}

}  // namespace

extern const OpDef kLogSoftmaxOp;
const OpDef kLogSoftmaxOp{
    .name = "log_softmax",
    .summary = "Logarithm of the softmax over the last axis.",
    .constraints = std::vector<Constraint>{{"C1", "the operand is f32"}, {"C2", "the operand has an axis"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateLogSoftmax,
    .cases =
        [] {
          auto make = [](std::string_view name, Shape shape) {
            return OpCase{name, {{f32(std::move(shape)), -6, 6}}, {}, 2e-6, "exp and log within WGSL's bounds"};
          };
          return std::vector{make("rows", {6, 13, 70}), make("one_row", {11}), make("one_column", {5, 1}), make("long", {3, 1500})};
        },
};

}  // namespace lockstep::graph
