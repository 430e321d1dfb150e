// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_norm.h"

namespace lockstep::graph::batch_norm_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &gain = c.operands[1], &bias = c.operands[2];
  for (const TensorType& type : c.operands) {
    if (type.dtype != DType::F32) return violated("batch_norm", "C1", fmt::format("an operand is {}, wanted f32", toString(type)));
  }
  if (x.shape.rank() < 2) return violated("batch_norm", "C2", fmt::format("x is {}, wanted [B, C, ...]", toString(x)));
  Shape channels{x.shape[1]};
  if (gain.shape != channels || bias.shape != channels) {
    return violated(
        "batch_norm", "C3",
        fmt::format("g is {} and b is {}, wanted f32{}, one for each channel of x", toString(gain), toString(bias), toString(channels)));
  }
  LS_CHECK(checkEps("batch_norm", "C4", c.attributes));
  return std::vector{x, f32(channels), f32(channels)};
}

/// Values of the channels as [1, C, 1...], which broadcasts against x.
struct Channels {
  Channels(Builder& builder, ValueId x) : b(builder), kept(b.shapeOf(x)), axes(allAxes(kept.rank())) {
    axes.erase(axes.begin() + 1);
    flat = Shape{kept.extent(1)};
    count = static_cast<double>(kept.elementCount()) / static_cast<double>(kept.extent(1));
    kept = keptShape(kept, axes);
  }
  ValueId sum(ValueId v) const { return b.make("sum", {v}, {{"axes", axes}, {"keep_dims", true}}); }
  ValueId mean(ValueId v) const { return b.mul(sum(v), 1 / count); }
  ValueId wide(ValueId v) const { return b.reshape(v, kept); }
  ValueId narrow(ValueId v) const { return b.reshape(v, flat); }

  Builder& b;
  Shape kept;
  std::vector<int64_t> axes;
  Shape flat;
  double count = 1;
};

struct Statistics {
  ValueId mean, centred, variance, rstd;
};
Statistics statistics(const Channels& c, const Node& node, ValueId x) {
  Builder& b = c.b;
  ValueId mean = c.mean(x), centred = b.sub(x, mean), variance = c.mean(b.mul(centred, centred));
  return {mean, centred, variance, b.make("rsqrt", {b.add(variance, node.attributes.get<double>("eps"))})};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Channels c(b, operands[0]);
  Statistics s = statistics(c, node, operands[0]);
  ValueId xhat = b.mul(s.centred, s.rstd);
  ValueId scaled = b.mul(xhat, c.wide(operands[1]));
  ValueId y = b.add(scaled, c.wide(operands[2])), mean = c.narrow(s.mean);
  return {y, mean, c.narrow(s.variance)};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Channels c(b, g.operands[0]);
  Statistics s = statistics(c, g.node, g.operands[0]);
  std::vector<ValueId> gradients(3);
  auto addTo = [&](ValueId& sum, ValueId term) { sum = sum.valid() ? b.add(sum, term) : term; };
  if (ValueId dy = g.cotangents[0]; dy.valid()) {
    ValueId xhat = b.mul(s.centred, s.rstd), dgain = c.sum(b.mul(dy, xhat)), dbias = c.sum(dy);
    // The means of dxhat and of dxhat xhat are dbias and dgain over the count, times the gain.
    ValueId along = b.mul(xhat, b.mul(dgain, 1 / c.count));
    ValueId rest = b.sub(b.sub(dy, b.mul(dbias, 1 / c.count)), along);
    gradients = {b.mul(rest, b.mul(s.rstd, c.wide(g.operands[1]))), c.narrow(dgain), c.narrow(dbias)};
  }
  if (g.cotangents[1].valid()) {
    ValueId each = b.mul(c.wide(g.cotangents[1]), 1 / c.count);
    addTo(gradients[0], b.broadcastTo(each, Shape(b.shapeOf(g.operands[0]))));
  }
  if (g.cotangents[2].valid()) addTo(gradients[0], b.mul(s.centred, b.mul(c.wide(g.cotangents[2]), 2 / c.count)));
  return gradients;
}

std::vector<Tensor> evaluateBatchNorm(const EvaluateContext& c) {
  const Tensor &x = *c.operands[0], &gain = *c.operands[1], &bias = *c.operands[2];
  size_t channels = gain.data.size(), area = x.data.size() / static_cast<size_t>(x.type.shape.extent(0)) / channels;
  double eps = c.node.attributes.get<double>("eps"), count = static_cast<double>(x.data.size()) / static_cast<double>(channels);
  Tensor y{c.results[0], std::vector<double>(x.data.size())};
  Tensor mean{c.results[1], std::vector<double>(channels, 0.0)}, variance{c.results[2], std::vector<double>(channels, 0.0)};
  auto channelOf = [&](size_t i) { return i / area % channels; };
  for (size_t i = 0; i < x.data.size(); ++i) mean.data[channelOf(i)] += x.data[i] / count;
  for (size_t i = 0; i < x.data.size(); ++i) {
    double centred = x.data[i] - mean.data[channelOf(i)];
    variance.data[channelOf(i)] += centred * centred / count;
  }
  for (size_t i = 0; i < x.data.size(); ++i) {
    size_t k = channelOf(i);
    y.data[i] = (x.data[i] - mean.data[k]) / std::sqrt(variance.data[k] + eps) * gain.data[k] + bias.data[k];
  }
  return {std::move(y), std::move(mean), std::move(variance)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, int64_t channels) {
    return OpCase{name,
                  {{f32(std::move(x)), -2, 2}, {f32({channels}), -2, 2}, {f32({channels}), -2, 2}},
                  {{"eps", 1e-5}},
                  4e-6,
                  "two sums, whose mean nearly cancels, inverseSqrt and five roundings an element"};
  };
  return {make("image", {3, 5, 4, 6}, 5), make("rows", {33, 7}, 7), make("signal", {4, 3, 9}, 3), make("one_channel", {5, 1, 3}, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "batch_norm",
    .summary =
        "Each channel of x [B, C, ...] normalised over the batch, times g, plus b; with the mean and the biased variance that it used.",
    .constraints = ConstantList<Constraint>{{"C1", "operands are f32"},
                                            {"C2", "x has at least two axes"},
                                            {"C3", "g and b have one axis with the extent of axis 1 of x"},
                                            {"C4", "eps is positive"}},
    .operands = ConstantList<std::string_view>{"x", "g", "b"},
    .attributes = ConstantList<AttributeDef>{{"eps", AttributeKind::Float, "added to the variance"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateBatchNorm,
    .cases = cases,
};

}  // namespace lockstep::graph::batch_norm_op
