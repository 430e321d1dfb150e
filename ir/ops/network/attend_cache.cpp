// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/attention_cache.h"

namespace lockstep::graph::attend_cache_op {
namespace {

constexpr std::string_view kName = "attend_cache";

constexpr size_t kFirstOwn = 4;  // among the operands

/// As `e`, with the keys of the queries alone.
AttentionExtents ownExtents(AttentionExtents e) {
  e.keys = e.queries;
  return e;
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(const AttentionExtents e, checkCachedAttention(kName, c));
  const AttentionExtents own = ownExtents(e);
  const std::vector<TensorType> wanted{f32(own.with({own.kv_heads, own.keys, own.width})),
                                       f32(own.with({own.kv_heads, own.keys, own.value_width}))};
  const auto given = c.operands.subspan(kFirstOwn);
  if (!given.empty() && !std::ranges::equal(given, wanted))
    return violated(kName, "C8",
                    fmt::format("{} operands after the length, wanted {} and {}", given.size(), toString(wanted[0]), toString(wanted[1])));
  const Attribute* shares = c.attributes.find(kSharesAttribute);
  const int64_t count = shares == nullptr ? 1 : std::get<int64_t>(*shares);
  if (count < 1 || count > kMostShares)
    return violated(kName, "C9", fmt::format("there are {} shares, wanted 1 to {}", count, kMostShares));
  if (count == 1) return std::vector{f32(e.out())};
  return std::vector{f32(e.with({e.heads, e.queries, rowOfShares(e.value_width, count)}))};
}

/// As the result has them.
AttentionExtents resultExtents(AttentionExtents e, int64_t shares) {
  if (shares > 1) e.value_width = rowOfShares(e.value_width, shares);
  return e;
}

TemplateShape shape(const Graph& graph, const Node& node) {
  const AttentionExtents e = attentionExtents(graph, node);
  const int64_t shares = sharesOf(node);
  std::vector<TemplateTensor> operands = attentionTensors({"q", "k", "v"}, e, graph, std::span(node.operands).first(3));
  operands.push_back(lengthTensor(e, graph.shapeOf(node.operands[3])));
  const bool has_own = node.operands.size() > kFirstOwn;
  if (has_own) {
    std::vector<TemplateTensor> own = attentionTensors({"k", "v"}, ownExtents(e), graph, std::span(node.operands).subspan(kFirstOwn));
    own[0].name = "own_k";
    own[1].name = "own_v";
    operands.insert(operands.end(), own.begin(), own.end());
  }
  return {.operands = std::move(operands),
          .results = attentionTensors({"out"}, resultExtents(e, shares), graph, node.results),
          .numbers = {{"batches", static_cast<double>(e.batches())},
                      {"group", static_cast<double>(e.group())},
                      {"queries", static_cast<double>(e.queries)},
                      {"keys", static_cast<double>(e.keys)},
                      {"width", static_cast<double>(e.width)},
                      {"value_width", static_cast<double>(e.value_width)},
                      {"scale", node.attributes.get<double>("scale")},
                      {"own", has_own ? 1.0 : 0.0},
                      {"shares", static_cast<double>(shares)},
                      {"window", static_cast<double>(windowOf(node))},
                      {"cap", softCapOf(node)}},
          .form = TemplateForm::Split,
          .rows = e.batches() * e.queries * shares,
          .run = e.queries * shares,
          .length = (e.keys + shares - 1) / shares,
          .registers = e.width + e.value_width,
          .shared = e.width + e.value_width,
          .operations = 2 * e.scores().elementCount() * (e.width + e.value_width)};
}

struct SharedCase {
  std::string_view name, shared;
  int64_t shares;
  double least;  ///< the length, so that no share is empty: its highest score would hide the errors of all other numbers
};
constexpr SharedCase kSharedCases[] = {{"token", "token_of_shares", 4, 12},       {"window", "window_of_shares", 3, 6},
                                       {"several", "several_of_shares", 2, 19},   {"wide", "wide_of_shares", 2, 20},
                                       {"capped", "capped_of_shares", 3, 29},     {"longest", "longest_of_shares", 8, 1031},
                                       {"own_rows", "own_rows_of_shares", 4, 21}, {"own_window", "own_window_of_shares", 2, 37}};

std::vector<OpCase> cases() {
  std::vector<OpCase> all = cachedAttentionCases();
  // The cache has something else where the queries' own keys belong.
  for (const OpCase& one : cachedAttentionCases()) {
    if (one.name != "several" && one.name != "window" && one.name != "rows") continue;
    OpCase own = one;
    own.name = one.name == "several" ? "own_several" : one.name == "window" ? "own_window" : "own_rows";
    const Shape q = own.operands[0].type.shape;
    for (const size_t cache : {1, 2}) {
      std::vector<int64_t> extents = own.operands[cache].type.shape.extents();
      extents[extents.size() - 2] = q.extent(q.rank() - 2);
      own.operands.push_back({f32(Shape(extents))});
    }
    all.push_back(own);
  }
  const std::vector<OpCase> whole = all;
  for (const OpCase& one : whole) {
    const auto* row = std::ranges::find(kSharedCases, one.name, &SharedCase::name);
    if (row == std::end(kSharedCases)) continue;
    OpCase shared = one;
    shared.name = row->shared;
    shared.attributes.set("shares", row->shares);
    shared.operands[3].lo = row->least;
    all.push_back(shared);
  }
  return all;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = kName,
    .summary =
        "cached_attention by a template, which reads the keys and values that some query sees, those of the queries' own positions where "
        "they come apart from the cache (Dao and others 2023, Flash-Decoding); with several shares of the keys, what join_shares needs.",
    .constraints =
        ConstantList<Constraint>{{"C1", kAttentionTypes},
                                 {"C2", kAttentionLeading},
                                 {"C3", kAttentionWidths},
                                 {"C4", kAttentionHeads},
                                 {"C5", kCacheLength},
                                 {"C6", kAttentionScale},
                                 {"C7", kCacheScores},
                                 {"C8", "what follows the length has the types of k and v with the queries in place of the keys"},
                                 {"C9", "there are 1 to 64 shares"}},
    .operands = ConstantList<std::string_view>{"q", "k", "v", "length", "own..."},
    .attributes = ConstantList<AttributeDef>{kScaleAttribute,
                                             kWindowAttribute,
                                             kSoftCapAttribute,
                                             {kSharesAttribute, AttributeKind::Integer,
                                              "parts of the keys, each summed up on its own; 1: the result is whole", false}},
    .infer = infer,
    .gradient = NotDifferentiable{"it is made after gradients"},
    .lower = TemplateLowering{.shader = kName, .shape = shape},
    .alias = NoAlias{},
    .evaluate = evaluateCachedAttention,
    .cases = cases,
};

}  // namespace lockstep::graph::attend_cache_op
