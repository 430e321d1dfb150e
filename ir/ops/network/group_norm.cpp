// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_norm.h"

namespace lockstep::graph::group_norm_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &gain = c.operands[1], &bias = c.operands[2];
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated("group_norm", "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  if (x.shape.rank() < 2) return violated("group_norm", "C2", fmt::format("x is {}, wanted [B, C, ...]", toString(x)));
  Shape channels{x.shape[1]};
  if (gain.shape != channels || bias.shape != channels) {
    return violated(
        "group_norm", "C3",
        fmt::format("g is {} and b is {}, wanted f32{}, one for each channel of x", toString(gain), toString(bias), toString(channels)));
  }
  int64_t groups = c.attributes.get<int64_t>("groups");
  if (groups < 1 || x.shape.extent(1) % groups != 0)
    return violated("group_norm", "C4", fmt::format("{} groups do not divide {} channels", groups, x.shape.extent(1)));
  LS_CHECK(checkEps("group_norm", "C5", c.attributes));
  return std::vector{x};
}

/// [C] against [B, C, ...].
ValueId alongChannels(Builder& b, ValueId v, const Shape& x) {
  std::vector<int64_t> extents(x.rank() - 1, 1);
  extents[0] = x.extent(1);
  return b.reshape(v, Shape(extents));
}

/// The groups of x as rows.
ValueId groupRows(Builder& b, const Node& node, ValueId x) {
  int64_t rows = b.shapeOf(x).extent(0) * node.attributes.get<int64_t>("groups");
  return b.reshape(x, Shape{rows, b.shapeOf(x).elementCount() / rows});
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], dy = g.cotangents[0];
  Shape shape = b.shapeOf(x), channels = b.shapeOf(g.operands[1]);
  Normalised n = normaliseRows(b, groupRows(b, g.node, x), g.node.attributes.get<double>("eps"));
  ValueId dxhat = b.mul(dy, alongChannels(b, g.operands[1], shape));
  ValueId dx = b.reshape(normaliseRowsGradient(b, n, groupRows(b, g.node, dxhat)), shape);
  ValueId along = b.mul(dy, b.reshape(n.xhat, shape));
  std::vector<int64_t> axes = allAxes(shape.rank());
  axes.erase(axes.begin() + 1);
  ValueId dgain = b.make("sum", {along}, {{"axes", axes}, {"keep_dims", false}});
  return {dx, dgain, b.make("sum", {dy}, {{"axes", axes}, {"keep_dims", false}})};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Shape shape = b.shapeOf(operands[0]);
  Normalised n = normaliseRows(b, groupRows(b, node, operands[0]), node.attributes.get<double>("eps"));
  ValueId xhat = b.reshape(n.xhat, shape);
  ValueId scaled = b.mul(xhat, alongChannels(b, operands[1], shape));
  return {b.add(scaled, alongChannels(b, operands[2], shape))};
}

std::vector<Tensor> evaluateGroupNorm(const EvaluateContext& c) {
  const Tensor &x = *c.operands[0], &gain = *c.operands[1], &bias = *c.operands[2];
  const Shape& shape = x.type.shape;
  auto rows = static_cast<size_t>(shape.extent(0) * c.node.attributes.get<int64_t>("groups"));
  auto channels = static_cast<size_t>(shape.extent(1));
  size_t columns = x.data.size() / rows, area = x.data.size() / static_cast<size_t>(shape.extent(0)) / channels;
  double eps = c.node.attributes.get<double>("eps"), count = static_cast<double>(columns);
  Tensor out{c.results[0], std::vector<double>(x.data.size())};
  for (size_t row = 0; row < x.data.size(); row += columns) {
    double mean = 0, variance = 0;
    for (size_t i = row; i < row + columns; ++i) mean += x.data[i] / count;
    for (size_t i = row; i < row + columns; ++i) variance += (x.data[i] - mean) * (x.data[i] - mean) / count;
    for (size_t i = row; i < row + columns; ++i) {
      size_t channel = i / area % channels;
      out.data[i] = (x.data[i] - mean) / std::sqrt(variance + eps) * gain.data[channel] + bias.data[channel];
    }
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, int64_t channels, int64_t groups) {
    return OpCase{name,
                  {{f32(std::move(x)), -2, 2}, {f32({channels}), -2, 2}, {f32({channels}), -2, 2}},
                  {{"groups", groups}, {"eps", 1e-5}},
                  2e-6,
                  "two blocked sums, inverseSqrt and five roundings an element"};
  };
  return {make("image", {2, 6, 5, 4}, 6, 3), make("layer", {3, 4, 7}, 4, 1), make("instance", {2, 5, 3, 3}, 5, 5),
          make("flat", {7, 12}, 12, 4)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "group_norm",
    .summary = "Each group of channels of x [B, C, ...] normalised to mean 0 and variance 1, times g, plus b (Wu and He 2018).",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "x has at least two axes"},
                                            {"C3", "g and b have one axis with the extent of axis 1 of x"},
                                            {"C4", "groups divides the channels"},
                                            {"C5", "eps is positive"}},
    .operands = ConstantList<std::string_view>{"x", "g", "b"},
    .attributes = ConstantList<AttributeDef>{{"groups", AttributeKind::Integer, "of neighbouring channels"},
                                             {"eps", AttributeKind::Float, "added to the variance"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateGroupNorm,
    .cases = cases,
};

}  // namespace lockstep::graph::group_norm_op
