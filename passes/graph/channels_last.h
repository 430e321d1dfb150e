// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// A product of weights with the windows of images, [O, I] [B, I, P], is turned into [B * P, I] [I, O], so that the channels of a pixel are
/// neighbours in memory. Elements and reductions of images [B, C, S...] that lie so are computed as [B, S..., C]; what they give is seen as
/// [B, C, S...] by a permutation, which moves nothing. So they fuse with the product, and the next one reads channels side by side.
///   %2 = matmul %w, %columns  %3 = relu %2
///   =>  %2 = matmul %rows, %turned  %3 = relu %2  %4 = permute %3 {permutation = [0, 2, 1]}
/// Weights of large products are copied into that order. Values that depend on their own position keep theirs. For GPUs, which load four
/// neighbours at once; lanes of CPU drivers go over positions.
graph::Graph channelsLast(const graph::Graph& graph);

}  // namespace lockstep::passes
