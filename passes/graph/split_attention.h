// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct SplitAttentionConfig {
  program::DeviceProfile profile;
};

/// Attention of few queries over a long cache runs in two steps, so that more units than there are queries have work: several workgroups
/// per query, each with a share of the keys, and what they found put together. The keys that are seen are shared out evenly, however many
/// they are.
///   %2 = attend_cache %q, %k, %v, %n {...}   =>   %1 = attend_cache %q, %k, %v, %n {..., shares = 8}  %2 = join_shares %1 {shares = 8}
/// The same numbers, but for rounding.
graph::Graph splitAttention(const graph::Graph& graph, const SplitAttentionConfig& config);

}  // namespace lockstep::passes
