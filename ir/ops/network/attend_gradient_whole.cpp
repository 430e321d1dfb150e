// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/attention.h"
#include "ir/ops/support/row_ops.h"

namespace lockstep::graph::attend_gradient_whole_op {
namespace {

constexpr std::string_view kName = "attend_gradient_whole";
enum Operand : size_t { kQ, kK, kV, kDOut, kDLse, kMask };

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkAttention(kName, c, {AttentionPart::Out, AttentionPart::Rows}));
  const AttentionExtents e(c.operands[kQ].shape, c.operands[kK].shape, c.operands[kV].shape);
  if (e.group() > 1) return violated(kName, "C9", fmt::format("there are {} heads of q and {} of k", e.heads, e.kv_heads));
  return std::vector{c.operands[kQ], c.operands[kK], c.operands[kV]};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const AttentionExtents e = attentionExtents(graph, node);
  return {.operands = attentionTensors({"q", "k", "v", "d_out", "d_lse", "mask"}, e, graph, node.operands),
          .results = attentionTensors({"dq", "dk", "dv"}, e, graph, node.results),
          .numbers = attentionNumbers(e, node, node.operands.size() > kMask),
          .form = TemplateForm::Whole,
          .rows = e.batches() * e.queries,
          .run = e.queries,
          .length = e.keys,
          .operations = 2 * e.scores().elementCount() * (3 * e.width + 2 * e.value_width),
          .held = (e.queries + e.keys) * (heldRow(e.width) + heldRow(e.value_width)) + 2 * heldArray(e.queries * (e.keys + 1)) +
                  3 * heldArray(e.queries)};
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  const AttentionReader reader(c, kMask);
  const auto weights = [](int64_t, int64_t, std::vector<double> scores) {
    softmaxRow(scores);
    return scores;
  };
  const auto along = [&](int64_t batch, int64_t query, const std::vector<double>& p, const std::vector<double>& dp) {
    double sum = -c.operands[kDLse]->data[static_cast<size_t>(batch * reader.extents().queries + query)];
    for (size_t key = 0; key < p.size(); ++key) sum += p[key] * dp[key];
    return sum;
  };
  AttentionGradients gradients = evaluateAttentionGradients(reader, {.d_out = *c.operands[kDOut], .weights = weights, .delta = along});
  std::vector<Tensor> results{std::move(gradients.dq), std::move(gradients.dk), std::move(gradients.dv)};
  for (size_t i = 0; i < results.size(); ++i) results[i].type = c.results[i];
  return results;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "The gradients of attend_whole towards q, k and v, by a template that computes the weights again.",
    .constraints = ConstantList<Constraint>{{"C1", kAttentionTypes},
                                            {"C2", kAttentionLeading},
                                            {"C3", kAttentionWidths},
                                            {"C4", kAttentionHeads},
                                            {"C5", kAttentionOffset},
                                            {"C6", kAttentionScale},
                                            {"C7", kAttentionMask},
                                            {"C8", kAttentionParts},
                                            {"C9", "q has as many heads as k"}},
    .operands = ConstantList<std::string_view>{"q", "k", "v", "d_out", "d_lse", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = "attend_gradient", .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases =
        [] {
          std::vector<OpCase> cases = attentionCases({AttentionPart::Out, AttentionPart::Rows});
          std::erase_if(cases, [](const OpCase& c) {
            const auto shapeOf = [&](size_t operand) { return c.operands[operand].type.shape; };
            return AttentionExtents(shapeOf(0), shapeOf(1), shapeOf(2)).group() > 1;
          });
          return cases;
        },
};

}  // namespace lockstep::graph::attend_gradient_whole_op
