// SPDX-License-Identifier: Apache-2.0
// What attention over the first positions of a cache shares: query t of T is at position length - T + t and sees the keys up to there.
#pragma once

#include "ir/ops/support/attention.h"

namespace lockstep::graph {

/// C1 to C6. Operands are q, k, v and the length.
Result<AttentionExtents> checkCachedAttention(std::string_view op, const InferContext& context);

inline constexpr ConstantList<Constraint> kCachedAttentionConstraints{
    {"C1", kAttentionTypes},
    {"C2", kAttentionLeading},
    {"C3", kAttentionWidths},
    {"C4", kAttentionHeads},
    {"C5", "the length is i32, a scalar or one per sequence: the axes before the heads"},
    {"C6", kAttentionScale}};

/// The result alone.
std::vector<Tensor> evaluateCachedAttention(const EvaluateContext& context);

std::vector<OpCase> cachedAttentionCases();

}  // namespace lockstep::graph
