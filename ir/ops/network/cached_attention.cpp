// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/attention_cache.h"

#include <limits>

namespace lockstep::graph::cached_attention_op {
namespace {

constexpr std::string_view kName = "cached_attention";

/// Queries up to which each of them goes over the cache by itself; more share what they read.
constexpr int64_t kFewQueries = 16;

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(const AttentionExtents e, checkCachedAttention(kName, c));
  return std::vector{f32(e.out())};
}

struct CappedScores {
  double scale, cap;
};

/// With the scores as a tensor of their own.
ValueId capped(Builder& b, const AttentionExtents& e, std::span<const ValueId> operands, const CappedScores& scores, ValueId mask) {
  // Each head of the cache serves neighbouring heads of queries: those are more queries of it.
  const int64_t rows = e.group() * e.queries;
  const ValueId q = b.reshape(operands[0], e.with({e.kv_heads, rows, e.width}));
  ValueId s = b.make("matmul", {q, b.swapLastAxes(operands[1])});
  s = b.mul(b.make("tanh", {b.mul(s, scores.scale / scores.cap)}), scores.cap);
  s = b.add(b.reshape(s, e.scores()), b.broadcastTo(mask, e.scores()));
  const ValueId weights = b.make("softmax", {s});
  const ValueId out = b.make("matmul", {b.reshape(weights, e.with({e.kv_heads, rows, e.keys})), operands[2]});
  return b.reshape(out, e.out());
}

/// Attention over all positions, with those hidden that a query does not see.
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const AttentionExtents e(b.shapeOf(operands[0]), b.shapeOf(operands[1]), b.shapeOf(operands[2]));
  const Shape lengths = b.shapeOf(operands[3]);
  std::vector<int64_t> aligned = lengths.extents();
  aligned.insert(aligned.end(), lengths.rank() == 0 ? 2 : 3, 1);
  std::vector<int64_t> wide = lengths.extents();
  if (lengths.rank() != 0) wide.push_back(1);
  wide.insert(wide.end(), {e.queries, e.keys});
  const Shape shape(wide);
  const auto numbers = [&](int64_t count) { return b.make("arange", {}, {{"n", count}, {"dtype", DType::I32}}); };
  const ValueId length = b.make("min", {operands[3], b.constant(static_cast<double>(e.keys), b.typeOf(operands[3]))});
  const ValueId query = b.broadcastTo(b.reshape(numbers(e.queries), Shape{e.queries, 1}), shape);
  const ValueId first = b.add(b.broadcastTo(b.reshape(length, Shape(aligned)), shape), -static_cast<double>(e.queries));
  const ValueId key = b.broadcastTo(numbers(e.keys), shape), place = b.add(first, query);
  ValueId hidden = b.make("greater", {key, place});
  if (const int64_t window = windowOf(node); window > 0) {
    const ValueId passed = b.make("less_equal", {key, b.add(place, -static_cast<double>(window))});
    hidden = b.make("logical_or", {hidden, passed});
  }
  const ValueId mask = b.make("where", {hidden, b.constant(-std::numeric_limits<double>::infinity(), shape), b.constant(0, shape)});
  if (softCapOf(node) > 0) return {capped(b, e, operands, {node.attributes.get<double>("scale"), softCapOf(node)}, mask)};
  Attributes attributes = node.attributes;
  attributes.erase("window");
  attributes.erase("soft_cap");
  attributes.set("causal", false);
  attributes.set("offset", int64_t{0});
  return {b.makeAll("scaled_dot_product_attention", {operands[0], operands[1], operands[2], mask}, attributes).front()};
}

/// Those of the template, which rounds nothing in between.
Attributes templateAttributes(const Node& node) {
  Attributes attributes = node.attributes;
  attributes.erase(kLowAttribute);
  return attributes;
}

int64_t queriesOf(const Builder& b, ValueId q) { return b.shapeOf(q).extent(b.shapeOf(q).rank() - 2); }

std::vector<ValueId> build(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  if (queriesOf(b, operands[0]) > kFewQueries) return {};
  return b.makeAll("attend_cache", {operands.begin(), operands.end()}, templateAttributes(node));
}
constexpr TemplateChoice kChoice{.name = "cached_attention", .build = build, .saved_elements = scoreElements, .gain = TemplateGain::Time};

/// Reads what the queries see and no more, where the decomposition reads all of the cache and keeps the scores of some.
std::vector<ValueId> buildChunk(Builder& b, const Node& node, std::span<const ValueId> operands, const std::vector<bool>&) {
  if (queriesOf(b, operands[0]) <= kFewQueries) return {};
  return b.makeAll("attend_chunk", {operands.begin(), operands.end()}, node.attributes);
}
constexpr TemplateChoice kChunkChoice{.name = "chunk_attention",
                                      .build = buildChunk,
                                      .saved_elements = scoreElements,
                                      .gain = TemplateGain::TimeByTiles,
                                      .otherwise = &kChoice};

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "scaled_dot_product_attention over the first positions of k and v, whose number is a value: query t of T is at position "
        "length - T + t and sees the keys up to there.",
    .constraints = kCachedAttentionConstraints,
    .operands = ConstantList<std::string_view>{"q", "k", "v", "length"},
    .attributes = ConstantList<AttributeDef>{kScaleAttribute, kWindowAttribute, kSoftCapAttribute, kRoundedAttribute},
    .infer = infer,
    .gradient = ByDecomposition{},
    .lower = DecomposeLowering{.decompose = decompose, .choice = &kChunkChoice},
    .alias = NoAlias{},
    .evaluate = evaluateCachedAttention,
    .cases = cachedAttentionCases,
    .mixed = MixedRole::Product,
    .factors = 1,  // rows of a cache were rounded when they were made, and rounding all of it would take a step as long as it has room
};

}  // namespace lockstep::graph::cached_attention_op
