// SPDX-License-Identifier: Apache-2.0
// What conv and conv_transpose share: both are a matrix product of the weights with windows of an image.
#pragma once

#include "ir/ops/support/sliding_window.h"

namespace lockstep::graph {

/// Attributes stride, padding, dilation (and output_padding) with the kernel extents of `weight` [., ., K...].
std::vector<Window> convolutionWindows(const Attributes& attributes, const Shape& weight);

/// What a result element of the adjoint of a convolution sees of x through the flipped kernel, with stride - 1 zeros between the elements
/// of x. `rest`: elements of the result added at the end.
Window backwardWindow(const Window& forward, int64_t rest);

/// How one axis of the result of a transposed convolution is made. Before its ends are cut, position t of the result is i * stride + k, so
/// positions of one phase t % stride see every stride-th element of the kernel: they are result channels of their own, and no zeros are
/// multiplied.
struct TransposedAxis {
  Window window;       ///< over x
  int64_t phases = 1;  ///< of the result
  int64_t made = 1;    ///< the first phases; the others are zeros, where the kernel has no element
  int64_t shift = 0;   ///< zeros before the kernel, which is filled up to made * window.kernel elements
  int64_t start = 0;   ///< first of the phases * positions elements that belongs to the result
};
/// `forward`: the window of the convolution whose adjoint this is. `extent` of x, `length` of the result. Phases are left out (1) for a
/// dilated kernel and for one channel per group.
TransposedAxis transposedAxis(const Window& forward, int64_t extent, int64_t length, bool is_depthwise);

/// Windows of x [B, C, S...] as [B, (G,) K * C/G, positions]; the axis G is there when groups > 1.
ValueId windowColumns(Builder& b, ValueId x, const std::vector<Window>& windows, int64_t groups);
/// weights [O, C/G, K...] as [(G,) O/G, K * C/G].
ValueId windowWeights(Builder& b, ValueId weights, int64_t groups);
/// weights [(G,) O/G, K * C/G] times windowColumns(x): [B, O, positions...].
ValueId productWithWindows(Builder& b, ValueId weights, ValueId x, const std::vector<Window>& windows, int64_t groups);
/// The gradient of conv by its weights [O, C/G, K...]: dy [B, O, positions...] times the windows of x, summed over batch and positions.
ValueId weightGradient(Builder& b, ValueId x, ValueId dy, const std::vector<Window>& windows, int64_t groups);

}  // namespace lockstep::graph
