// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/ops/support/attention.h"
#include "ir/ops/support/attention_pattern.h"
#include "ir/ops/support/attention_products.h"
#include "ir/ops/support/row_ops.h"

namespace lockstep::graph::scaled_dot_product_attention_op {
namespace {

constexpr std::string_view kName = "scaled_dot_product_attention";

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkAttention(kName, c, {}));
  const AttentionExtents e(c.operands[0].shape, c.operands[1].shape, c.operands[2].shape);
  return std::vector{f32(e.out()), f32(e.rows())};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const AttentionProducts a(b, node, operands, 3);
  const ValueId weights = a.rounded(a.weights());
  const ValueId out = b.reshape(b.make("matmul", {weights, operands[2]}), a.extents().out());
  // Nobody but a gradient reads the logarithm, and the decomposition of that does without.
  const ValueId scores = a.scores();
  const ValueId highest = rowMaximum(b, scores);
  const ValueId lse = b.add(highest, b.make("log", {b.sum(b.make("exp", {b.sub(scores, highest)}), -1, true)}));
  return {out, b.reshape(lse, a.extents().rows())};
}

std::vector<ValueId> build(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  return b.makeAll("attend", {operands.begin(), operands.end()}, node.attributes);
}
constexpr TemplateChoice kChoice{.name = "attention", .build = build, .saved_elements = scoreElements};

std::vector<ValueId> buildShort(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  const Shape &q = b.shapeOf(operands[0]), &k = b.shapeOf(operands[1]), &v = b.shapeOf(operands[2]);
  if (!isShort(AttentionExtents(q, k, v))) return {};
  return b.makeAll("attend_whole", {operands.begin(), operands.end()}, node.attributes);
}
constexpr TemplateChoice kShortChoice{
    .name = kShortAttention, .build = buildShort, .saved_elements = scoreElements, .gain = TemplateGain::TimeOnGpus, .otherwise = &kChoice};

constexpr Recognition kRecognition{.find = findAttention, .build = buildAttention};

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  const auto orZero = [&](size_t result) {
    return g.cotangents[result].valid() ? g.cotangents[result] : b.constant(0, Shape(b.shapeOf(g.results[result])));
  };
  std::vector<ValueId> operands(g.operands.begin(), g.operands.begin() + 3);
  operands.insert(operands.end(), {g.results[0], g.results[1], orZero(0), orZero(1)});
  operands.insert(operands.end(), g.operands.begin() + 3, g.operands.end());
  return b.makeAll("attention_gradient", operands, g.node.attributes);
}

/// Keys that do not count get no weight. Causal queries that count see none of them.
std::optional<std::vector<Opened>> openAttention(const OpenContext& c) {
  Builder& b = c.builder;
  const Opened &q = c.operands[0], &k = c.operands[1], &v = c.operands[2];
  const size_t rank = q.axes.size(), rows = rank - 2;
  OpenAxes scores(rank, 0);
  for (size_t axis = 0; axis < rows; ++axis) {
    if (k.axes[axis] != q.axes[axis] || v.axes[axis] != q.axes[axis]) return std::nullopt;
    scores[axis] = q.axes[axis];
  }
  scores[rows] = q.axes[rows];
  scores[rank - 1] = k.axes[rows];
  if (scores[rank - 3] != 0 || q.axes[rank - 1] != 0 || v.axes[rank - 1] != 0 || v.axes[rows] != k.axes[rows]) return std::nullopt;
  std::vector<ValueId> operands{q.value, k.value, v.value};
  if (c.operands.size() > 3) {
    const Opened& mask = c.operands[3];
    for (size_t axis = 0; axis < mask.axes.size(); ++axis) {
      if (c.shapeOf(3).extent(axis) > 1 && mask.axes[axis] != scores[rank - mask.axes.size() + axis]) return std::nullopt;
    }
    operands.push_back(mask.value);
  }
  const int64_t keys = c.shapeOf(1).extent(rows);
  const bool causal = c.node.attributes.get<bool>("causal");
  if (causal && ((scores[rows] != 0 && !countsFirst(scores[rows], c.shapeOf(0).extent(rows), c.capacity)) ||
                 (scores[rank - 1] != 0 && !countsFirst(scores[rank - 1], keys, c.capacity)))) {
    return std::nullopt;
  }
  const bool hides_none = causal && c.node.attributes.get<int64_t>("offset") == 0 && scores[rows] == scores[rank - 1];
  if (scores[rank - 1] != 0 && !hides_none) {
    std::vector<int64_t> extents{keys};
    if (operands.size() > 3) {
      extents = b.shapeOf(operands[3]).extents();
      if (extents.empty()) extents.push_back(1);
      extents.back() = keys;
    }
    const TensorType type = f32(Shape(extents));
    const ValueId others = operands.size() > 3 ? b.broadcastTo(operands[3], type.shape) : b.constant(0, type);
    const ValueId counted = b.broadcastTo(c.counts(keys, scores[rank - 1]), type.shape);
    operands.resize(3);
    operands.push_back(b.make("where", {counted, others, b.constant(-std::numeric_limits<double>::infinity(), type)}));
  }
  scores[rank - 1] = 0;  // of the value's width
  std::vector<Opened> results = c.made(operands, scores);
  results[1].axes.pop_back();
  return results;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "softmax(scale q k^T + mask) v over heads [..., H, T, D], and the logarithms of the sums of that softmax; each head of k and v "
        "serves H/Hkv heads of q (Vaswani and others 2017).",
    .constraints = kAttentionConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kShortChoice},
    .alias = NoAlias{},
    .evaluate = evaluateAttention,
    .cases = [] { return attentionCases({}); },
    .mixed = MixedRole::Product,
    .recognition = &kRecognition,
    .factors = 3,
    .open = openAttention,
};

}  // namespace lockstep::graph::scaled_dot_product_attention_op
