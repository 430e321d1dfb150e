// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention.h"
#include "ir/ops/support/attention_pattern.h"
#include "ir/ops/support/attention_products.h"
#include "ir/ops/support/row_ops.h"

namespace lockstep::graph {
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
  return b.makeAll("attend", {operands.begin(), operands.end()}, templateAttributes(node));
}
constexpr TemplateChoice kChoice{.name = "attention", .build = build, .saved_elements = scoreElements};

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

}  // namespace

extern const OpDef kScaledDotProductAttentionOp;
constexpr OpDef kScaledDotProductAttentionOp{
    .name = kName,
    .summary =
        "softmax(scale q k^T + mask) v over heads [..., H, T, D], and the logarithms of the sums of that softmax; each head of k and v "
        "serves H/Hkv heads of q (Vaswani and others 2017).",
    .constraints = kAttentionConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kChoice},
    .alias = NoAlias{},
    .evaluate = evaluateAttention,
    .cases = [] { return attentionCases({}); },
    .mixed = MixedRole::Product,
    .recognition = &kRecognition,
    .factors = 3,
};

}  // namespace lockstep::graph
