// SPDX-License-Identifier: Apache-2.0
// Attention as users write it by hand: softmax(matmul(q, k transposed) * scale) and a product with v, both by matmul or einsum. The scores
// may be scaled, then hidden (softmax_causal, where_causal by -1e9 or less, where by -inf) or added to what broadcasts to them, in any
// order. A mask of finite numbers by `where` stays as it is: a row without any visible key has a gradient of 0 there, and attention another
// one.
#pragma once

#include <optional>
#include <span>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

std::optional<Spelled> findAttention(const Graph& graph, const Node& last, std::span<const uint32_t> readers);
ValueId buildAttention(Builder& builder, const Spelled& spelled, const Shape& result);

}  // namespace lockstep::graph
