// SPDX-License-Identifier: Apache-2.0
// The geometry that windows, fold, convolution and pooling share: a kernel that slides along an axis.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// One axis. Element k of the window at position p is element (p * stride + k * dilation - padding_low) / input_dilation of the operand;
/// there is none outside the operand and where the division leaves a remainder.
struct Window {
  int64_t kernel = 1, stride = 1, padding_low = 0, padding_high = 0, dilation = 1, input_dilation = 1;
  /// Positions along an axis of `extent` elements: floor((dilated extent + paddings - dilated kernel) / stride) + 1; 0 when none fits.
  [[nodiscard]] int64_t positions(int64_t extent) const;
};
/// The windows cover the last axes of these extents without gap or overlap.
bool tile(const std::vector<Window>& windows, const std::vector<int64_t>& extents);

/// Attributes kernel, stride, padding_low, padding_high, dilation, input_dilation: one number an axis. Those that are absent keep the
/// values above; `padding` gives both sides.
std::vector<Window> windowsOf(const Attributes& attributes);
Attributes attributesOf(const std::vector<Window>& windows);
/// `label`: every list has the same length of at least 1, is no longer than `rank`, and its numbers are in range: kernel, stride and
/// dilations at least 1, paddings in (-2^30, 2^30).
Status checkWindows(std::string_view op, std::string_view label, const Attributes& attributes, size_t rank);
/// The positions along the last axes of `shape`; `label` when a window does not fit or a padded extent is not below 2^31.
Result<std::vector<int64_t>> windowPositions(std::string_view op, std::string_view label, const Shape& shape,
                                             const std::vector<Window>& windows);

/// Along the last axes: [..., S...] -> [..., P..., K...], elements that do not exist are `fill`.
ValueId makeWindows(Builder& b, ValueId x, const std::vector<Window>& windows, double fill = 0);
/// The adjoint: each element of [..., P..., K...] is added where windows of [..., extents...] took it from.
ValueId makeFold(Builder& b, ValueId y, const std::vector<Window>& windows, const std::vector<int64_t>& extents);
/// makeFold before it adds: [..., P..., K...] -> [..., extents..., K...], the element that each kernel element k took from each position,
/// `fill` where there is none.
ValueId gatherWindows(Builder& b, ValueId y, const std::vector<Window>& windows, const std::vector<int64_t>& extents, double fill = 0);
/// The pooling windows over the axes [B, C, S...] of `x`, from attributes kernel, stride and padding. C1: x is f32 with a rank of at least
/// 3; C2: one number a spatial axis, kernel and stride at least 1, padding between 0 and half the kernel; C3: the windows fit.
Result<std::vector<Window>> poolingWindows(std::string_view op, const TensorType& x, const Attributes& attributes);

}  // namespace lockstep::graph
