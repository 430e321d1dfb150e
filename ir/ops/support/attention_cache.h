// SPDX-License-Identifier: Apache-2.0
// What attention over the first positions of a cache shares: query t of T is at position length - T + t and sees the keys up to there.
#pragma once

#include "ir/ops/support/attention.h"

namespace lockstep::graph {

inline constexpr std::string_view kCacheLength = "the length is i32, a scalar or one per sequence: the axes before the heads",
                                  kCacheScores = "the window is at least 0 and below 2^31, and the soft cap a number of at least 0";

/// C1 to C7. Operands are q, k, v and the length.
Result<AttentionExtents> checkCachedAttention(std::string_view op, const InferContext& context);

inline constexpr ConstantList<Constraint> kCachedAttentionConstraints{
    {"C1", kAttentionTypes}, {"C2", kAttentionLeading}, {"C3", kAttentionWidths}, {"C4", kAttentionHeads},
    {"C5", kCacheLength},    {"C6", kAttentionScale},   {"C7", kCacheScores}};

/// Queries from which on workgroups by matrix units, which take 64 of them, have work for many units.
inline constexpr int64_t kManyCachedQueries = 256;

inline constexpr AttributeDef kWindowAttribute{"window", AttributeKind::Integer, "keys up to its own that a query sees; 0: all", false},
    kSoftCapAttribute{"soft_cap", AttributeKind::Float, "scores s become c tanh(s / c); 0: they stay as they are", false};
int64_t windowOf(const Node& node);
double softCapOf(const Node& node);

/// Of attend_cache: by how many workgroups the keys of a query are shared out. Of the n keys of the cache that it sees, share i of S has
/// those from i ceil(n / S) on; the queries' own keys, where they come apart, belong to share 0. With scores as powers of two, s log2(e), a
/// share has the highest one h (at least the lowest f32), its total t = sum 2^(s - h) and sums 2^(s - h) v; once t is a NaN, so are all of
/// them.
inline constexpr std::string_view kSharesAttribute = "shares";
inline constexpr int64_t kMostShares = 64;
int64_t sharesOf(const Node& node);
/// Elements of a row of such a result: the sums, then the total, then the highest score. Each has one number per share, side by side.
constexpr int64_t rowOfShares(int64_t value_width, int64_t shares) { return (value_width + 2) * shares; }

/// As a template reads it: the length of each head's sequence.
TemplateTensor lengthTensor(const AttentionExtents& extents, const Shape& length);

/// The result alone.
std::vector<Tensor> evaluateCachedAttention(const EvaluateContext& context);

std::vector<OpCase> cachedAttentionCases();

}  // namespace lockstep::graph
