// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

enum class Reduction : uint8_t { None, Mean, Sum };

std::optional<Reduction> findReduction(const Attributes& attributes) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "mean", "sum"};
  auto found = std::find(kNames.begin(), kNames.end(), attributes.get<std::string>("reduction"));
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Reduction>(found - kNames.begin());
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &logits = c.operands[0], &targets = c.operands[1];
  if (logits.dtype != DType::F32) return violated("cross_entropy", "C1", fmt::format("the logits are {}, wanted f32", toString(logits)));
  if (targets.dtype != DType::I32) return violated("cross_entropy", "C2", fmt::format("the targets are {}, wanted i32", toString(targets)));
  std::vector<Dim> dims = logits.shape.dims();
  bool matches = !dims.empty();
  if (matches) dims.pop_back();
  if (!matches || Shape(dims) != targets.shape) {
    return violated(
        "cross_entropy", "C3",
        fmt::format("the targets {} do not have the axes of the logits {} without the last", toString(targets), toString(logits)));
  }
  std::optional<Reduction> reduction = findReduction(c.attributes);
  if (!reduction) {
    return violated("cross_entropy", "C4",
                    fmt::format("reduction is '{}', wanted none, mean or sum", c.attributes.get<std::string>("reduction")));
  }
  return std::vector{f32(*reduction == Reduction::None ? targets.shape : Shape{})};
}

// (softmax - one_hot) dy in each row, 0 in a row whose target is outside. The softmax is written as exp(log_softmax), which decompose makes
// too.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId logits = g.operands[0], targets = g.operands[1], dy = g.cotangents[0];
  Shape shape = b.shapeOf(logits), rows = b.shapeOf(targets);
  int64_t last = static_cast<int64_t>(rows.rank()), classes = shape.extent(rows.rank());
  if (findReduction(g.node.attributes) == Reduction::Mean) dy = b.mul(dy, 1.0 / static_cast<double>(rows.elementCount()));
  dy = b.broadcastTo(dy, rows);
  ValueId zero = b.constant(0, rows);
  ValueId below = b.make("less", {targets, b.constant(static_cast<double>(classes), i32(rows))});
  ValueId negative = b.make("less", {targets, b.constant(0, i32(rows))});
  dy = b.make("where", {below, b.make("where", {negative, zero, dy}), zero});
  ValueId probabilities = b.make("exp", {b.make("log_softmax", {logits})});
  ValueId hot = b.make("one_hot", {targets}, {{"depth", classes}});
  ValueId difference = b.sub(probabilities, hot);
  return {b.mul(difference, b.reshape(dy, keptShape(shape, {last}))), ValueId()};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Shape rows = b.shapeOf(operands[1]);
  ValueId loss = b.neg(b.make("take_last", {b.make("log_softmax", {operands[0]}), operands[1]}));
  Reduction reduction = *findReduction(node.attributes);
  if (reduction == Reduction::None) return {loss};
  if (rows.rank() > 0) loss = b.make("sum", {loss}, {{"axes", allAxes(rows.rank())}, {"keep_dims", false}});
  if (reduction == Reduction::Mean) loss = b.mul(loss, 1.0 / static_cast<double>(rows.elementCount()));
  return {loss};
}

std::vector<Tensor> evaluateCrossEntropy(const EvaluateContext& c) {
  const Tensor &logits = *c.operands[0], &targets = *c.operands[1];
  size_t classes = logits.data.size() / targets.data.size();
  std::vector<double> losses;
  for (size_t row = 0; row < targets.data.size(); ++row) {
    const double* x = logits.data.data() + row * classes;
    double maximum = *std::max_element(x, x + classes), sum = 0, target = targets.data[row];
    for (size_t i = 0; i < classes; ++i) sum += std::exp(x[i] - maximum);
    bool inside = target >= 0 && target < static_cast<double>(classes);
    losses.push_back(inside ? std::log(sum) - (x[static_cast<size_t>(target)] - maximum) : 0.0);
  }
  const std::string& reduction = c.node.attributes.get<std::string>("reduction");
  if (reduction == "none") return {Tensor{c.results[0], std::move(losses)}};
  double total = std::accumulate(losses.begin(), losses.end(), 0.0);
  return {Tensor{c.results[0], {reduction == "mean" ? total / static_cast<double>(losses.size()) : total}}};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape logits, Shape targets, double lo, double hi, const char* reduction) {
    return OpCase{name,
                  {{f32(std::move(logits)), -4, 4}, {i32(std::move(targets)), lo, hi}},
                  {{"reduction", std::string(reduction)}},
                  3e-6,
                  "exp and log within WGSL's bounds, then a sum of positive numbers"};
  };
  return {make("none", {4, 6, 27}, {4, 6}, 0, 26, "none"), make("mean", {4, 6, 27}, {4, 6}, 0, 26, "mean"),
          make("sum", {130, 12}, {130}, 0, 11, "sum"), make("outside", {41, 5}, {41}, -2, 7, "mean"),
          make("vector", {9}, {}, 4, 4, "mean")};
}

}  // namespace

extern const OpDef kCrossEntropyOp;
const OpDef kCrossEntropyOp{
    .name = "cross_entropy",
    .summary = "Negative logarithm of the softmax of the logits at the target class; a target outside adds 0 but counts in the mean.",
    .constraints = std::vector<Constraint>{{"C1", "the logits are f32"},
                                           {"C2", "the targets are i32"},
                                           {"C3", "the targets have the shape of the logits without the last axis"},
                                           {"C4", "reduction is none, mean or sum"}},
    .operands = std::vector<std::string_view>{"logits", "targets"},
    .attributes = std::vector<AttributeDef>{{"reduction", AttributeKind::String, "none keeps a loss a row, mean and sum give a scalar"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateCrossEntropy,
    .cases = cases,
};

}  // namespace lockstep::graph
