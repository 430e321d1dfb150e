// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/attention.h"
#include "ir/ops/support/attention_products.h"
#include "ir/ops/support/row_ops.h"

namespace lockstep::graph::attention_gradient_op {
namespace {

constexpr std::string_view kName = "attention_gradient";
/// Places of the operands.
enum Operand : size_t { kQ, kK, kV, kOut, kLse, kDOut, kDLse, kMask };

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkAttention(kName, c, {AttentionPart::Out, AttentionPart::Rows, AttentionPart::Out, AttentionPart::Rows}));
  std::vector<TensorType> types{c.operands[kQ], c.operands[kK], c.operands[kV]};
  if (c.operands.size() > kMask) types.push_back(c.operands[kMask]);
  return types;
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const AttentionProducts a(b, node, operands, kMask);
  const AttentionExtents& e = a.extents();
  const ValueId q = a.grouped(operands[kQ], e.width), dy = a.grouped(operands[kDOut], e.value_width);
  const ValueId p = a.rounded(a.weights());
  const ValueId dv = b.make("matmul", {b.swapLastAxes(p), dy});
  const ValueId dp = a.rounded(b.make("matmul", {dy, b.swapLastAxes(operands[kV])}));
  ValueId along = b.sum(b.mul(dp, p), -1, true);
  if (!isZero(b, operands[kDLse])) along = b.sub(along, a.grouped(operands[kDLse], 1));
  const ValueId dscores = b.mul(b.sub(dp, along), p);
  const ValueId ds = b.mul(a.rounded(dscores), node.attributes.get<double>("scale"));
  const ValueId dq = b.reshape(b.make("matmul", {ds, operands[kK]}), Shape(b.shapeOf(operands[kQ])));
  std::vector<ValueId> results{dq, b.make("matmul", {b.swapLastAxes(ds), q}), dv};
  if (operands.size() > kMask) results.push_back(b.sumToShape(b.reshape(dscores, e.scores()), Shape(b.shapeOf(operands[kMask]))));
  return results;
}

/// The gradient of a mask has the elements that the template is there to avoid.
std::vector<ValueId> build(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>& used) {
  const bool masked = operands.size() > kMask;
  if (masked && used[3]) return {};
  const ValueId along = b.sum(b.mul(operands[kDOut], operands[kOut]), -1, false);
  const ValueId delta = isZero(b, operands[kDLse]) ? along : b.sub(along, operands[kDLse]);
  std::vector<ValueId> read{operands[kQ], operands[kK], operands[kV], operands[kDOut], operands[kLse], delta};
  if (masked) read.push_back(operands[kMask]);
  const Attributes attributes = node.attributes;
  const ValueId dq = b.make("attend_gradient_queries", read, attributes);
  const std::vector<ValueId> of_keys = b.makeAll("attend_gradient_keys", read, attributes);
  std::vector<ValueId> results{dq, of_keys[0], of_keys[1]};
  if (masked) results.push_back(b.constant(0, Shape(b.shapeOf(operands[kMask]))));  // nobody reads it
  return results;
}
constexpr TemplateChoice kChoice{.name = "attention", .build = build, .saved_elements = scoreElements};

/// Where several heads of q have one of k, its gradients would be sums over workgroups.
std::vector<ValueId> buildShort(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>& used) {
  const AttentionExtents e(b.shapeOf(operands[kQ]), b.shapeOf(operands[kK]), b.shapeOf(operands[kV]));
  const bool masked = operands.size() > kMask;
  if (!isShort(e) || e.group() > 1 || (masked && used[3])) return {};
  std::vector<ValueId> read{operands[kQ], operands[kK], operands[kV], operands[kDOut], operands[kDLse]};
  if (masked) read.push_back(operands[kMask]);
  std::vector<ValueId> results = b.makeAll("attend_gradient_whole", read, node.attributes);
  if (masked) results.push_back(b.constant(0, Shape(b.shapeOf(operands[kMask]))));  // nobody reads it
  return results;
}
constexpr TemplateChoice kShortChoice{
    .name = kShortAttention, .build = buildShort, .saved_elements = scoreElements, .gain = TemplateGain::TimeOnGpus, .otherwise = &kChoice};

/// Of the weights as the softmax gives them: out and lse are there to save their computation.
std::vector<Tensor> evaluateGradient(const EvaluateContext& c) {
  const AttentionReader reader(c, kMask);
  const AttentionExtents& e = reader.extents();
  const auto softmax = [](int64_t, int64_t, std::vector<double> scores) {
    softmaxRow(scores);
    return scores;
  };
  const auto along = [&](int64_t batch, int64_t query, const std::vector<double>& p, const std::vector<double>& dp) {
    double sum = -c.operands[kDLse]->data[static_cast<size_t>(batch * e.queries + query)];
    for (size_t key = 0; key < p.size(); ++key) sum += p[key] * dp[key];
    return sum;
  };
  const bool masked = c.operands.size() > kMask;
  AttentionGradients gradients =
      evaluateAttentionGradients(reader, {.d_out = *c.operands[kDOut], .weights = softmax, .delta = along, .keeps_scores = masked});
  std::vector<Tensor> results{std::move(gradients.dq), std::move(gradients.dk), std::move(gradients.dv)};
  if (masked) {
    const Shape scores = e.scores(), &mask = c.results[3].shape;
    Tensor sum{{}, std::vector<double>(static_cast<size_t>(mask.elementCount()), 0.0)};
    const std::vector<int64_t> extents = scores.extents(), strides = mask.strides();
    std::vector<int64_t> index(extents.size(), 0);
    size_t number = 0;
    do {
      int64_t at = 0;
      for (size_t axis = 0; axis < strides.size(); ++axis)
        at += std::min(index[axis + index.size() - strides.size()], mask.extent(axis) - 1) * strides[axis];
      sum.data[static_cast<size_t>(at)] += gradients.dscores[number++];
    } while (nextIndex(index, extents));
    results.push_back(std::move(sum));
  }
  for (size_t i = 0; i < results.size(); ++i) results[i].type = c.results[i];
  return results;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "The gradients of scaled_dot_product_attention towards q, k, v and the mask, from those of its results (Dao 2023, "
        "FlashAttention-2).",
    .constraints = kAttentionPartConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "out", "lse", "d_out", "d_lse", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = ByDecomposition{},
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kShortChoice},
    .alias = NoAlias{},
    .evaluate = evaluateGradient,
    .cases = [] { return attentionCases({AttentionPart::Out, AttentionPart::Rows, AttentionPart::Out, AttentionPart::Rows}); },
};

}  // namespace lockstep::graph::attention_gradient_op
