// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_norm.h"

namespace lockstep::graph::layer_norm_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &gain = c.operands[1], &bias = c.operands[2];
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated("layer_norm", "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  if (x.shape.rank() == 0) return violated("layer_norm", "C2", "x is a scalar and has no last axis");
  Shape row{x.shape[x.shape.rank() - 1]};
  if (gain.shape != row || bias.shape != row) {
    return violated("layer_norm", "C3",
                    fmt::format("g is {} and b is {}, wanted f32{} as the last axis of x", toString(gain), toString(bias), toString(row)));
  }
  LS_CHECK(checkEps("layer_norm", "C4", c.attributes));
  return std::vector{x};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId gain = g.operands[1], dy = g.cotangents[0];
  Shape row = b.shapeOf(gain);
  Normalised n = normaliseRows(b, g.operands[0], g.node.attributes.get<double>("eps"));
  ValueId dx = normaliseRowsGradient(b, n, b.mul(dy, gain));
  ValueId dgain = b.sumToShape(b.mul(dy, n.xhat), row);
  return {dx, dgain, b.sumToShape(dy, row)};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  ValueId xhat = normaliseRows(b, operands[0], node.attributes.get<double>("eps")).xhat;
  return {b.add(b.mul(xhat, operands[1]), operands[2])};
}

std::vector<Tensor> evaluateLayerNorm(const EvaluateContext& c) {
  const Tensor &x = *c.operands[0], &gain = *c.operands[1], &bias = *c.operands[2];
  size_t columns = gain.data.size();
  double count = static_cast<double>(columns), eps = c.node.attributes.get<double>("eps");
  Tensor out{c.results[0], std::vector<double>(x.data.size())};
  for (size_t row = 0; row < x.data.size(); row += columns) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < columns; ++i) mean += x.data[row + i] / count;
    for (size_t i = 0; i < columns; ++i) variance += (x.data[row + i] - mean) * (x.data[row + i] - mean) / count;
    for (size_t i = 0; i < columns; ++i) {
      double xhat = (x.data[row + i] - mean) / std::sqrt(variance + eps);
      out.data[row + i] = xhat * gain.data[i] + bias.data[i];
    }
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, int64_t columns, double lo, double hi) {
    return OpCase{name,
                  {{f32(std::move(x)), lo, hi}, {f32({columns}), -2, 2}, {f32({columns}), -2, 2}},
                  {{"eps", 1e-5}},
                  2e-6,
                  "two blocked sums, inverseSqrt and five roundings an element"};
  };
  return {make("rows", {5, 7, 48}, 48, -4, 4), make("odd", {3, 257}, 257, -2, 2), make("vector", {64}, 64, -2, 2),
          make("one", {4, 1}, 1, -2, 2)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "layer_norm",
    .summary = "The last axis normalised to mean 0 and variance 1, times g, plus b.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "x has an axis"},
                                            {"C3", "g and b have one axis with the extent of the last axis of x"},
                                            {"C4", "eps is positive"}},
    .operands = ConstantList<std::string_view>{"x", "g", "b"},
    .attributes = ConstantList<AttributeDef>{{"eps", AttributeKind::Float, "added to the variance"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateLayerNorm,
    .cases = cases,
};

}  // namespace lockstep::graph::layer_norm_op
