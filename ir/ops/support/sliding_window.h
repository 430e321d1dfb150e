// SPDX-License-Identifier: Apache-2.0
// The geometry that windows, fold, convolution and pooling share: a kernel that slides along an axis.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"
#include "ir/ops/support/common.h"

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

/// Attributes kernel, stride, padding_low, padding_high, dilation, input_dilation: one number per axis. Those that are absent keep the
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
/// 3; C2: one number per spatial axis, kernel and stride at least 1, padding between 0 and half the kernel; C3: the windows fit.
Result<std::vector<Window>> poolingWindows(std::string_view op, const TensorType& x, const Attributes& attributes);
/// The shape of what pooling makes of `x`: [B, C, P...].
Shape pooledShape(const Shape& x, const std::vector<Window>& windows);
/// y [..., P...] repeated as [..., P..., K...].
ValueId overKernel(Builder& b, ValueId y, const std::vector<Window>& windows);
/// For evaluators of pooling: calls visit(index, inside) for each kernel element, row-major, of the window at `position` of the result
/// [B, C, P...]; `index` is that of the element of x [B, C, S...], which exists if `inside`.
template <class Visit>
void visitWindow(const std::vector<Window>& windows, const Shape& x, const std::vector<int64_t>& position, Visit&& visit) {
  std::vector<int64_t> kernel, k(windows.size(), 0), index = position;
  for (const Window& window : windows) kernel.push_back(window.kernel);
  do {
    bool inside = true;
    for (size_t i = 0; i < windows.size(); ++i) {
      index[2 + i] = position[2 + i] * windows[i].stride + k[i] - windows[i].padding_low;
      inside = inside && index[2 + i] >= 0 && index[2 + i] < x.extent(2 + i);
    }
    visit(index, inside);
  } while (nextIndex(k, kernel));
}

}  // namespace lockstep::graph
