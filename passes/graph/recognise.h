// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Ops that a graph spells out by others (OpDef::recognition: attention as products and a softmax) become one node, before gradients and
/// mixed precision take them apart:
///   %1 = matmul %q, (permute %k)  %2 = mul %1, scale  %3 = softmax %2  %4 = matmul %3, %v
///                                                        =>    %4, %5 = scaled_dot_product_attention %q, %k, %v {scale = ...}
/// Never fails.
graph::Graph recognise(const graph::Graph& graph);

}  // namespace lockstep::passes
