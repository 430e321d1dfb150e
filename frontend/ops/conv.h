// SPDX-License-Identifier: Apache-2.0
// Convolution, pooling and resampling of images [B, C, H, W] (and signals [B, C, T]).
#pragma once

#include <cstdint>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// Two numbers, for height and width; one number stands for both.
struct Size2 {
  int64_t height, width;
  Size2(int64_t both) : height(both), width(both) {}
  Size2(int64_t h, int64_t w) : height(h), width(w) {}
};

struct ConvOptions {
  Size2 stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;  ///< divides both channel counts; a group's result channels see its input channels only
};
/// Cross-correlation with zero padding: x [B, C, H, W], w [O, C/groups, kH, kW] -> [B, O, H', W'] with
/// H' = floor((H + 2 padding - dilation (kH - 1) - 1) / stride) + 1.
Tensor conv2d(Tensor x, Tensor w, ConvOptions options = {}, Where where = Where::current());
struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
/// x [B, C, T], w [O, C/groups, k] -> [B, O, T'].
Tensor conv1d(Tensor x, Tensor w, Conv1dOptions options = {}, Where where = Where::current());

struct ConvTransposeOptions {
  Size2 stride = 1, padding = 0, dilation = 1, output_padding = 0;
  int64_t groups = 1;
};
/// The adjoint of conv2d: x [B, C, H, W], w [C, O/groups, kH, kW] -> [B, O, H', W'] with
/// H' = (H - 1) stride - 2 padding + dilation (kH - 1) + output_padding + 1; output_padding is below stride.
Tensor conv_transpose2d(Tensor x, Tensor w, ConvTransposeOptions options = {}, Where where = Where::current());

struct PoolOptions {
  Size2 stride = 0;  ///< 0: the kernel's size
  Size2 padding = 0;
};
/// The largest element of each window; padding (at most half the kernel) never wins. The gradient goes to the first of equal elements.
Tensor max_pool2d(Tensor x, Size2 kernel, PoolOptions options = {}, Where where = Where::current());
struct AvgPoolOptions {
  Size2 stride = 0;  ///< 0: the kernel's size
  Size2 padding = 0;
  bool count_include_pad = true;  ///< false: only elements of x count in the mean
};
Tensor avg_pool2d(Tensor x, Size2 kernel, AvgPoolOptions options = {}, Where where = Where::current());
/// [B, C, H, W] -> [B, C, 1, 1]
Tensor global_avg_pool2d(Tensor x, Where where = Where::current());
Tensor global_max_pool2d(Tensor x, Where where = Where::current());

/// [B, C, H, W] -> [B, C, H factor, W factor]: each element is repeated.
Tensor nearest_upsample2d(Tensor x, Size2 factor, Where where = Where::current());
/// [B, C, H, W] -> [B, C, height, width] by linear interpolation along both axes, with pixel centres at half integers (align_corners =
/// false): position (i + 1/2) H / height - 1/2, clamped to the image.
Tensor bilinear_upsample2d(Tensor x, Size2 size, Where where = Where::current());

}  // namespace lockstep
