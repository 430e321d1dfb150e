// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention.h"

namespace lockstep::graph::attend_gradient_queries_op {
namespace {

constexpr std::string_view kName = "attend_gradient_queries";

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkAttention(kName, c, {AttentionPart::Out, AttentionPart::Rows, AttentionPart::Rows}));
  return std::vector{c.operands[0]};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const AttentionExtents e = attentionExtents(graph, node);
  return {.operands = attentionTensors({"q", "k", "v", "d_out", "lse", "delta", "mask"}, e, graph, node.operands),
          .results = attentionTensors({"dq"}, e, graph, node.results),
          .numbers = attentionNumbers(e, node, node.operands.size() > 6),
          .rows = e.batches() * e.queries,
          .run = e.queries,
          .length = e.keys,
          .registers = 2 * e.width + e.value_width,
          .shared = e.width + e.value_width,
          .operations = 2 * e.scores().elementCount() * (2 * e.width + e.value_width),
          .low = lowOf(node),
          .has_matrix = true};
}

std::vector<Tensor> evaluate(const EvaluateContext& c) {
  AttentionGradients gradients = evaluateAttentionGradients(c);
  gradients.dq.type = c.results[0];
  return {std::move(gradients.dq)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "The gradient of attend towards q, by a template; delta is sum(d_out out) - d_lse along the width.",
    .constraints = kAttentionPartConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "d_out", "lse", "delta", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluate,
    .cases = [] { return attentionCases({AttentionPart::Out, AttentionPart::Rows, AttentionPart::Rows}); },
};

}  // namespace lockstep::graph::attend_gradient_queries_op
