// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_norm.h"

namespace lockstep::graph::rms_norm_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &gain = c.operands[1];
  if (x.dtype != DType::F32 || gain.dtype != DType::F32)
    return violated("rms_norm", "C1", fmt::format("operands are {} and {}, wanted f32", toString(x), toString(gain)));
  if (x.shape.rank() == 0) return violated("rms_norm", "C2", "x is a scalar and has no last axis");
  Shape row{x.shape[x.shape.rank() - 1]};
  if (gain.shape != row)
    return violated("rms_norm", "C3", fmt::format("g is {}, wanted f32{} as the last axis of x", toString(gain), toString(row)));
  LS_CHECK(checkEps("rms_norm", "C4", c.attributes));
  return std::vector{x};
}

Normalised normalise(Builder& b, const Node& node, ValueId x) {
  ValueId square = rowMean(b, b.mul(x, x));
  ValueId rstd = b.make("rsqrt", {b.add(square, node.attributes.get<double>("eps"))});
  return {b.mul(x, rstd), rstd};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId gain = g.operands[1], dy = g.cotangents[0];
  Shape row = b.shapeOf(gain);
  Normalised n = normalise(b, g.node, g.operands[0]);
  ValueId dxhat = b.mul(dy, gain);
  ValueId along = b.mul(n.xhat, rowMean(b, b.mul(dxhat, n.xhat)));
  ValueId dx = b.mul(b.sub(dxhat, along), n.rstd);
  return {dx, b.sumToShape(b.mul(dy, n.xhat), row)};
}

std::vector<Tensor> evaluateRmsNorm(const EvaluateContext& c) {
  return {Tensor{c.results[0], rmsNormalised(c.operands[0]->data, c.operands[1]->data, c.node.attributes.get<double>("eps"))}};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, int64_t columns) {
    return OpCase{name,
                  {{f32(std::move(x)), -2, 2}, {f32({columns}), -2, 2}},
                  {{"eps", 1e-6}},
                  2e-6,
                  "one blocked sum, inverseSqrt and four roundings an element"};
  };
  return {make("rows", {5, 7, 48}, 48), make("odd", {3, 257}, 257), make("vector", {64}, 64)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "rms_norm",
    .summary = "The last axis divided by its root mean square, times g (Zhang and Sennrich 2019).",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "x has an axis"},
                                            {"C3", "g has one axis with the extent of the last axis of x"},
                                            {"C4", "eps is positive"}},
    .operands = ConstantList<std::string_view>{"x", "g"},
    .attributes = ConstantList<AttributeDef>{{"eps", AttributeKind::Float, "added to the mean square"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose =
                                   [](Builder& b, const Node& node, std::span<const ValueId> operands) {
                                     return std::vector{b.mul(normalise(b, node, operands[0]).xhat, operands[1])};
                                   }},
    .alias = NoAlias{},
    .evaluate = evaluateRmsNorm,
    .cases = cases,
};

}  // namespace lockstep::graph::rms_norm_op
