// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention_cache.h"

namespace lockstep::graph::attend_chunk_op {
namespace {

constexpr std::string_view kName = "attend_chunk";

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(const AttentionExtents e, checkCachedAttention(kName, c));
  return std::vector{f32(e.out())};
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const AttentionExtents e = attentionExtents(graph, node);
  std::vector<TemplateTensor> operands = attentionTensors({"q", "k", "v"}, e, graph, std::span(node.operands).first(3));
  operands.push_back(lengthTensor(e, graph.shapeOf(node.operands[3])));
  std::vector<std::pair<std::string, double>> numbers{{"batches", static_cast<double>(e.batches())},
                                                      {"group", static_cast<double>(e.group())},
                                                      {"queries", static_cast<double>(e.queries)},
                                                      {"keys", static_cast<double>(e.keys)},
                                                      {"width", static_cast<double>(e.width)},
                                                      {"value_width", static_cast<double>(e.value_width)},
                                                      {"causal", 1},
                                                      {"past", 1},
                                                      {"scale", node.attributes.get<double>("scale")}};
  // The template for matrix units has no window and no cap, and few queries leave most of its workgroups without work.
  const bool is_plain = windowOf(node) == 0 && softCapOf(node) == 0, has_matrix = is_plain && e.queries >= kManyCachedQueries;
  if (!is_plain) {
    numbers.emplace_back("window", static_cast<double>(windowOf(node)));
    numbers.emplace_back("cap", softCapOf(node));
  }
  return {.operands = std::move(operands),
          .results = attentionTensors({"out"}, e, graph, node.results),
          .numbers = std::move(numbers),
          .rows = e.batches() * e.queries,
          .run = e.queries,
          .length = e.keys,
          .registers = e.width + e.value_width,
          .shared = e.width + e.value_width,
          .operations = 2 * e.scores().elementCount() * (e.width + e.value_width),
          .low = has_matrix ? lowOf(node) : DType::F32,
          .has_matrix = has_matrix};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "cached_attention of many queries by a template: what some of them see goes through workgroup memory, and no score is kept in "
        "memory "
        "(Dao 2023).",
    .constraints = kCachedAttentionConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "length"},
    .attributes = ConstantList<AttributeDef>{kScaleAttribute, kWindowAttribute, kSoftCapAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = "attend", .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluateCachedAttention,
    .cases = cachedAttentionCases,
};

}  // namespace lockstep::graph::attend_chunk_op
