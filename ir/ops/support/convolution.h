// SPDX-License-Identifier: Apache-2.0
// What conv and conv_transpose share: both are a matrix product of the weights with windows of an image.
#pragma once

#include "ir/ops/support/sliding_window.h"

namespace lockstep::graph {

/// Attributes stride, padding, dilation (and output_padding) with the kernel extents of `weight` [., ., K...].
std::vector<Window> convolutionWindows(const Attributes& attributes, const Shape& weight);

/// Windows of x [B, C, S...] as [B, (G,) K * C/G, positions]; the axis G is there when groups > 1.
ValueId windowColumns(Builder& b, ValueId x, const std::vector<Window>& windows, int64_t groups);
/// weights [O, C/G, K...] as [(G,) O/G, K * C/G].
ValueId windowWeights(Builder& b, ValueId weights, int64_t groups);
/// weights [(G,) O/G, K * C/G] times windowColumns(x): [B, O, positions...].
ValueId productWithWindows(Builder& b, ValueId weights, ValueId x, const std::vector<Window>& windows, int64_t groups);
/// The gradient of conv by its weights [O, C/G, K...]: dy [B, O, positions...] times the windows of x, summed over batch and positions.
ValueId weightGradient(Builder& b, ValueId x, ValueId dy, const std::vector<Window>& windows, int64_t groups);

}  // namespace lockstep::graph
