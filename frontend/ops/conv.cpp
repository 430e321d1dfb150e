// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/conv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "frontend/ops/network.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::emit;
using detail::raise;

namespace {

using List = std::vector<int64_t>;
List list(Size2 size) { return {size.height, size.width}; }

void requireImage(std::string_view op, const Tensor& x, const Where& where) {
  detail::Trace::require(op, where);
  if (x.dtype(where) == DType::F32 && x.rank(where) == 4) return;
  raise(fmt::format("{}.C1", op), fmt::format("x is {}, wanted f32 [B, C, H, W]", toString(x.type(where))), {x}, where,
        x.rank(where) == 3 ? "expand_dims(x, 0) makes a batch of one image, expand_dims(x, 1) one channel"
                           : "reshape or cast it to that form");
}

/// The rows of an interpolation from `from` to `to` elements: [to, from], two weights a row.
Tensor interpolation(int64_t from, int64_t to, const Where& where) {
  std::vector<float> weights(static_cast<size_t>(from * to), 0.0F);
  for (int64_t i = 0; i < to; ++i) {
    double at = (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    at = std::clamp(at, 0.0, static_cast<double>(from - 1));
    auto low = static_cast<int64_t>(at);
    int64_t high = std::min(low + 1, from - 1);
    double part = at - static_cast<double>(low);
    weights[static_cast<size_t>(i * from + low)] += static_cast<float>(1 - part);
    weights[static_cast<size_t>(i * from + high)] += static_cast<float>(part);
  }
  return constant(std::span<const float>(weights), {to, from}, where);
}

}  // namespace

Tensor conv2d(Tensor x, Tensor w, ConvOptions options, Where where) {
  requireImage("conv2d", x, where);
  return emit("conv", {x, w},
              {{"stride", list(options.stride)},
               {"padding", list(options.padding)},
               {"dilation", list(options.dilation)},
               {"groups", options.groups}},
              where);
}

Tensor conv1d(Tensor x, Tensor w, Conv1dOptions options, Where where) {
  detail::Trace::require("conv1d", where);
  if (x.rank(where) != 3)
    raise("conv1d.C1", fmt::format("x is {}, wanted f32 [B, C, T]", toString(x.type(where))), {x}, where,
          "expand_dims(x, 1) makes one channel of [B, T]");
  return emit("conv", {x, w},
              {{"stride", List{options.stride}},
               {"padding", List{options.padding}},
               {"dilation", List{options.dilation}},
               {"groups", options.groups}},
              where);
}

Tensor conv_transpose2d(Tensor x, Tensor w, ConvTransposeOptions options, Where where) {
  requireImage("conv_transpose2d", x, where);
  return emit("conv_transpose", {x, w},
              {{"stride", list(options.stride)},
               {"padding", list(options.padding)},
               {"dilation", list(options.dilation)},
               {"output_padding", list(options.output_padding)},
               {"groups", options.groups}},
              where);
}

Tensor max_pool2d(Tensor x, Size2 kernel, PoolOptions options, Where where) {
  requireImage("max_pool2d", x, where);
  List stride = list(options.stride) == List{0, 0} ? list(kernel) : list(options.stride);
  return emit("max_pool", {x}, {{"kernel", list(kernel)}, {"stride", stride}, {"padding", list(options.padding)}}, where);
}

Tensor avg_pool2d(Tensor x, Size2 kernel, AvgPoolOptions options, Where where) {
  requireImage("avg_pool2d", x, where);
  List stride = list(options.stride) == List{0, 0} ? list(kernel) : list(options.stride);
  return emit(
      "avg_pool", {x},
      {{"kernel", list(kernel)}, {"stride", stride}, {"padding", list(options.padding)}, {"count_include_pad", options.count_include_pad}},
      where);
}

Tensor global_avg_pool2d(Tensor x, Where where) {
  requireImage("global_avg_pool2d", x, where);
  return avg_pool2d(x, {x.extent(2, where), x.extent(3, where)}, {}, where);
}

Tensor global_max_pool2d(Tensor x, Where where) {
  requireImage("global_max_pool2d", x, where);
  return max_pool2d(x, {x.extent(2, where), x.extent(3, where)}, {}, where);
}

Tensor nearest_upsample2d(Tensor x, Size2 factor, Where where) {
  requireImage("nearest_upsample2d", x, where);
  if (factor.height < 1 || factor.width < 1) {
    raise("nearest_upsample2d.factor", fmt::format("factors {} and {} are not at least 1", factor.height, factor.width), {x}, where,
          "give factors of 1 or more");
  }
  List e = x.shape(where).extents();
  Tensor ones = reshape(x, {e[0], e[1], e[2], 1, e[3], 1}, where);
  Tensor repeated = broadcast_to(ones, {e[0], e[1], e[2], factor.height, e[3], factor.width}, where);
  return reshape(repeated, {e[0], e[1], e[2] * factor.height, e[3] * factor.width}, where);
}

Tensor bilinear_upsample2d(Tensor x, Size2 size, Where where) {
  requireImage("bilinear_upsample2d", x, where);
  if (size.height < 1 || size.width < 1) {
    raise("bilinear_upsample2d.size", fmt::format("the size {} x {} is not at least 1 x 1", size.height, size.width), {x}, where,
          "give a size of 1 or more");
  }
  Tensor rows = interpolation(x.extent(2, where), size.height, where);
  Tensor columns = swap_axes(interpolation(x.extent(3, where), size.width, where), 0, 1, where);
  return matmul(rows, matmul(x, columns, where), where);
}

}  // namespace lockstep
