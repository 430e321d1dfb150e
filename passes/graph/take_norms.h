// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Products with quantised weights normalise their rows themselves: each workgroup of their template reads a whole row anyway, and a kernel
/// for the norm would be a level of its own. Where a product becomes other operations, so does its norm, and products of one row share it.
///   %3 = rms_norm %0, %1 {eps = 1e-6}; %4 = quantized_matmul %3, %words, %scales {...}
///     =>   %4 = quantized_matmul %0, %words, %scales, %1 {..., eps = 1e-6}
graph::Graph takeNorms(const graph::Graph& graph);

}  // namespace lockstep::passes
