// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention.h"

namespace lockstep::graph::attend_whole_op {
namespace {

constexpr std::string_view kName = "attend_whole";

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_CHECK(checkAttention(kName, c, {}));
  const AttentionExtents e(c.operands[0].shape, c.operands[1].shape, c.operands[2].shape);
  return std::vector{f32(e.out()), f32(e.rows())};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const AttentionExtents e = attentionExtents(graph, node);
  return {.operands = attentionTensors({"q", "k", "v", "mask"}, e, graph, node.operands),
          .results = attentionTensors({"out", "lse"}, e, graph, node.results),
          .numbers = attentionNumbers(e, node, node.operands.size() > 3),
          .form = TemplateForm::Whole,
          .rows = e.batches() * e.queries,
          .run = e.queries,
          .length = e.keys,
          .operations = 2 * e.scores().elementCount() * (e.width + e.value_width),
          .held = (e.queries + e.keys) * heldRow(e.width) + e.keys * heldRow(e.value_width) + heldArray(e.queries * (e.keys + 1))};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "scaled_dot_product_attention of short sequences by a template: a workgroup has the scores of a head, in f32 in mixed precision, "
        "too.",
    .constraints = kAttentionConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = "attend", .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluateAttention,
    .cases = [] { return attentionCases({}); },
};

}  // namespace lockstep::graph::attend_whole_op
