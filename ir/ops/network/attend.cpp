// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention.h"

namespace lockstep::graph::attend_op {
namespace {

constexpr std::string_view kName = "attend";

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
          .rows = e.batches() * e.queries,
          .run = e.queries,
          .length = e.keys,
          .registers = e.width + e.value_width,
          .shared = e.width + e.value_width,
          .operations = 2 * e.scores().elementCount() * (e.width + e.value_width),
          .low = lowOf(node),
          .has_matrix = true};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary = "scaled_dot_product_attention by a template: no score is kept in memory (Milakov and Gimelshein 2018; Dao 2023).",
    .constraints = kAttentionConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "mask..."},
    .attributes = ConstantList<AttributeDef>{kCausalAttribute, kOffsetAttribute, kScaleAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluateAttention,
    .cases = [] { return attentionCases({}); },
};

}  // namespace lockstep::graph::attend_op
