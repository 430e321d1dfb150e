// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/ops/support/common.h"

namespace lockstep::graph::cross_entropy_op {
namespace {

enum class Reduction : uint8_t { None, Mean, Sum };

std::optional<Reduction> findReduction(const Attributes& attributes) {
  static constexpr std::array<std::string_view, 3> kNames{"none", "mean", "sum"};
  auto found = std::find(kNames.begin(), kNames.end(), attributes.get<std::string>("reduction"));
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Reduction>(found - kNames.begin());
}

double smoothingOf(const Attributes& attributes) {
  return attributes.find("label_smoothing") == nullptr ? 0.0 : attributes.get<double>("label_smoothing");
}

std::optional<int64_t> ignoredTarget(const Attributes& attributes) {
  if (attributes.find("ignore_index") == nullptr) return std::nullopt;
  return attributes.get<int64_t>("ignore_index");
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
  TensorType wanted = f32({logits.shape.dims().back()});
  if (c.operands.size() > 3 || (c.operands.size() == 3 && c.operands[2] != wanted)) {
    return violated("cross_entropy", "C5",
                    fmt::format("there are {} weights, the last {}, wanted one {}", c.operands.size() - 2, toString(c.operands.back()),
                                toString(wanted)));
  }
  double smoothing = smoothingOf(c.attributes);
  if (!(smoothing >= 0 && smoothing <= 1)) return violated("cross_entropy", "C6", fmt::format("label_smoothing is {}", smoothing));
  return std::vector{f32(*reduction == Reduction::None ? targets.shape : Shape{})};
}

ValueId total(Builder& b, ValueId x) {
  size_t rank = b.shapeOf(x).rank();
  return rank == 0 ? x : b.make("sum", {x}, {{"axes", allAxes(rank)}, {"keep_dims", false}});
}

/// What decompose and gradient share: the operands with the values of each row.
struct Rows {
  Builder& b;
  const Node& node;
  ValueId logits, targets, weights;  ///< weights invalid if there are none
  Shape shape, classes, kept;        ///< of the targets, of the weights, and of the targets with a last axis of extent 1
  double count, class_count;

  Rows(Builder& builder, const Node& n, std::span<const ValueId> operands)
      : b(builder), node(n), logits(operands[0]), targets(operands[1]), weights(operands.size() > 2 ? operands[2] : ValueId()) {
    const Shape full = b.shapeOf(logits);
    shape = b.shapeOf(targets);
    classes = {full.dims().back()};
    kept = keptShape(full, {static_cast<int64_t>(shape.rank())});
    count = static_cast<double>(shape.elementCount());
    class_count = static_cast<double>(classes.elementCount());
  }

  ValueId compare(std::string_view op, double number) { return b.make(op, {targets, b.constant(number, i32(shape))}); }
  /// Of the rows whose target is a class and not ignored: `values`, 0 in the others.
  ValueId inside(ValueId values) {
    ValueId above = compare("greater_equal", 0), below = compare("less", class_count);
    ValueId is_class = b.make("logical_and", {above, below});
    return counted(b.make("where", {is_class, values, b.constant(0, shape)}));
  }
  /// Of the rows whose target is not ignored: `values`, 0 in the others.
  ValueId counted(ValueId values) {
    std::optional<int64_t> ignored = ignoredTarget(node.attributes);
    if (!ignored) return values;
    return b.make("where", {compare("equal", static_cast<double>(*ignored)), b.constant(0, shape), values});
  }
  /// Of each row the value of its class; 0 for a target that is none.
  ValueId ofTarget(ValueId values) {
    ValueId places = b.reshape(targets, kept);
    ValueId taken = b.make("take_along_axis", {values, places}, {{"axis", static_cast<int64_t>(shape.rank())}});
    return b.reshape(taken, shape);
  }
  ValueId classWeights() { return ofTarget(b.broadcastTo(weights, b.shapeOf(logits))); }
  /// dy by what the mean divides by, or a sum by it.
  ValueId byMean(ValueId value) {
    if (!weights.valid() && !ignoredTarget(node.attributes)) return b.mul(value, 1.0 / count);
    ValueId row_weights = weights.valid() ? classWeights() : b.constant(1, shape);
    return b.div(value, total(b, counted(row_weights)));
  }
};

// (softmax - one_hot) dy in each row, 0 in a row that has no class. The softmax is written as exp(log_softmax), which decompose makes too.
// Smoothing spreads its part of dy over all classes: s (W softmax - w) dy, where w are the weights, W is their sum and s is label_smoothing
// by the number of classes.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Rows rows(b, g.node, g.operands);
  double smoothing = smoothingOf(g.node.attributes), spread = smoothing / rows.class_count;
  bool mean = findReduction(g.node.attributes) == Reduction::Mean;
  ValueId dy = mean ? rows.byMean(g.cotangents[0]) : g.cotangents[0];
  dy = rows.inside(b.broadcastTo(dy, rows.shape));
  ValueId log_probabilities = b.make("log_softmax", {rows.logits});
  ValueId probabilities = b.make("exp", {log_probabilities});
  ValueId hot = b.make("one_hot", {rows.targets}, {{"depth", static_cast<int64_t>(rows.class_count)}});
  ValueId row_dy = rows.weights.valid() ? b.mul(dy, rows.classWeights()) : dy;
  if (smoothing != 0) row_dy = b.mul(row_dy, 1 - smoothing);
  ValueId error = b.sub(probabilities, hot);
  ValueId by_logits = b.mul(error, b.reshape(row_dy, rows.kept));
  ValueId each_dy = b.reshape(dy, rows.kept);
  if (smoothing != 0) {
    ValueId weights = rows.weights.valid() ? rows.weights : b.constant(1, rows.classes);
    ValueId difference = b.sub(b.mul(probabilities, total(b, weights)), weights);
    by_logits = b.add(by_logits, b.mul(difference, b.mul(each_dy, spread)));
  }
  if (!rows.weights.valid()) return {by_logits, ValueId()};
  // The loss is linear in the weights but for the division by their sum.
  ValueId share = b.add(b.mul(hot, 1 - smoothing), spread);
  ValueId by_weights = b.neg(b.mul(b.mul(share, log_probabilities), each_dy));
  if (mean) by_weights = b.sub(by_weights, b.mul(b.mul(hot, each_dy), g.results[0]));
  return {by_logits, ValueId(), b.sumToShape(by_weights, rows.classes)};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Rows rows(b, node, operands);
  double smoothing = smoothingOf(node.attributes);
  ValueId log_probabilities = b.make("log_softmax", {rows.logits});
  ValueId loss = b.neg(rows.ofTarget(log_probabilities));
  if (rows.weights.valid()) loss = b.mul(loss, rows.classWeights());
  loss = rows.counted(loss);
  if (smoothing != 0) {
    ValueId weighted = rows.weights.valid() ? b.mul(log_probabilities, rows.weights) : log_probabilities;
    ValueId spread = b.mul(b.sum(weighted, -1, false), -smoothing / rows.class_count);
    loss = b.add(b.mul(loss, 1 - smoothing), rows.inside(spread));
  }
  Reduction reduction = *findReduction(node.attributes);
  if (reduction == Reduction::None) return {loss};
  loss = total(b, loss);
  return {reduction == Reduction::Mean ? rows.byMean(loss) : loss};
}

std::vector<Tensor> evaluateCrossEntropy(const EvaluateContext& c) {
  const Tensor &logits = *c.operands[0], &targets = *c.operands[1];
  size_t classes = logits.data.size() / targets.data.size();
  std::vector<double> weights = c.operands.size() > 2 ? c.operands[2]->data : std::vector<double>(classes, 1.0);
  double smoothing = smoothingOf(c.node.attributes), sum_of_weights = 0;
  std::optional<int64_t> ignored = ignoredTarget(c.node.attributes);
  std::vector<double> losses;
  for (size_t row = 0; row < targets.data.size(); ++row) {
    const double* x = logits.data.data() + row * classes;
    double maximum = *std::max_element(x, x + classes), sum = 0, target = targets.data[row], loss = 0;
    for (size_t i = 0; i < classes; ++i) sum += std::exp(x[i] - maximum);
    auto lossOf = [&](size_t i) { return weights[i] * (std::log(sum) - (x[i] - maximum)); };
    bool counts = !ignored || target != static_cast<double>(*ignored);
    bool inside = target >= 0 && target < static_cast<double>(classes);
    if (counts && inside) {
      loss = (1 - smoothing) * lossOf(static_cast<size_t>(target));
      for (size_t i = 0; smoothing != 0 && i < classes; ++i) loss += smoothing / static_cast<double>(classes) * lossOf(i);
      sum_of_weights += weights[static_cast<size_t>(target)];
    } else if (counts && c.operands.size() == 2) {
      sum_of_weights += 1;
    }
    losses.push_back(loss);
  }
  const std::string& reduction = c.node.attributes.get<std::string>("reduction");
  if (reduction == "none") return {Tensor{c.results[0], std::move(losses)}};
  double all = std::accumulate(losses.begin(), losses.end(), 0.0);
  return {Tensor{c.results[0], {reduction == "mean" ? all / sum_of_weights : all}}};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape logits, Shape targets, double lo, double hi, Attributes attributes) {
    return OpCase{name,
                  {{f32(std::move(logits)), -4, 4}, {i32(std::move(targets)), lo, hi}},
                  std::move(attributes),
                  3e-6,
                  "exp and log within WGSL's bounds, then a sum of positive numbers"};
  };
  const std::string none = "none", mean = "mean", sum = "sum";
  const int64_t two = 2;
  std::vector<OpCase> cases{
      make("none", {4, 6, 27}, {4, 6}, 0, 26, {{"reduction", none}}),
      make("mean", {4, 6, 27}, {4, 6}, 0, 26, {{"reduction", mean}}),
      make("sum", {130, 12}, {130}, 0, 11, {{"reduction", sum}}),
      make("outside", {41, 5}, {41}, -2, 7, {{"reduction", mean}}),
      make("vector", {9}, {}, 4, 4, {{"reduction", mean}}),
      make("ignored", {41, 5}, {41}, -1, 5, {{"reduction", mean}, {"ignore_index", two}}),
      make("smoothed", {4, 6, 7}, {4, 6}, 0, 6, {{"reduction", mean}, {"label_smoothing", 0.1}}),
      make("smoothed_rows", {41, 5}, {41}, -1, 5, {{"reduction", none}, {"label_smoothing", 0.3}, {"ignore_index", two}})};
  for (OpCase weighted :
       {make("weighted", {4, 3, 7}, {4, 3}, 0, 6, {{"reduction", mean}}),
        make("weighted_sum", {11, 5}, {11}, -1, 5, {{"reduction", sum}, {"label_smoothing", 0.2}}),
        make("weighted_all", {11, 5}, {11}, -1, 5, {{"reduction", mean}, {"label_smoothing", 0.2}, {"ignore_index", two}}),
        make("weighted_vector", {9}, {}, 4, 4, {{"reduction", mean}, {"label_smoothing", 0.2}})}) {
    weighted.operands.push_back({f32({weighted.operands[0].type.shape.dims().back()}), 0.2, 2});
    cases.push_back(std::move(weighted));
  }
  return cases;
}

/// The sum of the losses of the rows that count, and what the mean divides by.
std::optional<std::vector<Opened>> openCrossEntropy(const OpenContext& c) {
  Builder& b = c.builder;
  OpenAxes axes = c.operands[0].axes;
  const bool has_open_classes = axes.back() != 0;
  axes.pop_back();
  const std::optional<OpenAxes> rows = joinedAxes(axes, c.operands[1].axes);
  const Reduction reduction = *findReduction(c.node.attributes);
  const bool has_weights = c.operands.size() > 2;
  if (has_open_classes || !rows || (has_weights && (isOpen(c.operands[2].axes) || reduction == Reduction::Mean))) return std::nullopt;
  std::vector<ValueId> operands;
  for (const Opened& operand : c.operands) operands.push_back(operand.value);
  Attributes each = c.node.attributes;
  each.set("reduction", std::string("none"));
  const ValueId losses = b.make("cross_entropy", operands, each);
  if (reduction == Reduction::None) return std::vector{Opened{losses, *rows}};
  const auto sumOf = [&](ValueId values) {
    for (size_t axis = 0; axis < rows->size(); ++axis) values = c.filled({values, *rows}, axis, 0);
    return total(b, values);
  };
  const ValueId sum = sumOf(losses);
  if (reduction == Reduction::Sum) return std::vector{Opened{sum, {}}};
  ValueId counted = b.constant(1, Shape(b.shapeOf(operands[1])));
  if (const std::optional<int64_t> ignored = ignoredTarget(c.node.attributes)) {
    const Shape shape = b.shapeOf(counted);
    const ValueId is_ignored = b.make("equal", {operands[1], b.constant(static_cast<double>(*ignored), i32(shape))});
    counted = b.make("where", {is_ignored, b.constant(0, shape), counted});
  }
  return std::vector{Opened{b.div(sum, sumOf(counted)), {}}};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "cross_entropy",
    .summary =
        "Negative logarithm of the softmax of the logits at the target class, times the weight of that class; a target outside adds 0 "
        "but counts in the mean.",
    .constraints = ConstantList<Constraint>{{"C1", "the logits are f32"},
                                            {"C2", "the targets are i32"},
                                            {"C3", "the targets have the shape of the logits without the last axis"},
                                            {"C4", "reduction is none, mean or sum"},
                                            {"C5", "there is at most one tensor of weights, f32 with an element for each class"},
                                            {"C6", "label_smoothing is between 0 and 1"}},
    .operands = ConstantList<std::string_view>{"logits", "targets", "weights..."},
    .attributes =
        ConstantList<AttributeDef>{
            {"reduction", AttributeKind::String,
             "none keeps a loss a row, sum and mean give a scalar; mean divides by the weights of the rows"},
            {"ignore_index", AttributeKind::Integer, "a target whose rows add 0 and do not count in the mean", false},
            {"label_smoothing", AttributeKind::Float, "the part of the loss that is the mean over all classes instead", false}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateCrossEntropy,
    .cases = cases,
    .index = [](const Graph& graph, const Node& node) -> IndexUse {
      return {.operand = 1,
              .extent = graph.shapeOf(node.operands[0]).extents().back(),
              .ignored = ignoredTarget(node.attributes),
              .what = "label",
              .places = "classes"};
    },
    .open = openCrossEntropy,
};

}  // namespace lockstep::graph::cross_entropy_op
