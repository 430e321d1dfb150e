// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/convolution.h"

#include <algorithm>

#include "ir/ops/support/common.h"

namespace lockstep::graph {
namespace {

struct Counts {
  int64_t positions = 1, kernel = 1;
};
Counts countsOf(const Shape& x, const std::vector<Window>& windows) {
  Counts counts;
  for (size_t i = 0; i < windows.size(); ++i) {
    counts.positions *= windows[i].positions(x.extent(2 + i));
    counts.kernel *= windows[i].kernel;
  }
  return counts;
}

/// [B, K..., C, positions...], or the positions after the batch. The channels of a kernel element are neighbours: what depends on the
/// element, such as whether it is past the edge, is asked once for all of them.
ValueId orderedWindows(Builder& b, ValueId x, const std::vector<Window>& windows, bool positions_first) {
  auto n = static_cast<int64_t>(windows.size());
  std::vector<int64_t> order{0};
  auto appendAxes = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) order.push_back(first + i);
  };
  if (positions_first) appendAxes(2, n);
  appendAxes(2 + n, n);
  order.push_back(1);
  if (!positions_first) appendAxes(2, n);
  return b.permute(makeWindows(b, x, windows), order);
}

/// [O, C, K...] as [O, K..., C], and back.
ValueId kernelFirst(Builder& b, ValueId weights) {
  std::vector<int64_t> order = allAxes(b.shapeOf(weights).rank());
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return b.permute(weights, std::move(order));
}
ValueId kernelLast(Builder& b, ValueId weights) {
  std::vector<int64_t> order = allAxes(b.shapeOf(weights).rank());
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return b.permute(weights, std::move(order));
}

}  // namespace

std::vector<Window> convolutionWindows(const Attributes& attributes, const Shape& weight) {
  std::vector<Window> windows = windowsOf(attributes);
  for (size_t i = 0; i < windows.size(); ++i) windows[i].kernel = weight.extent(2 + i);
  return windows;
}

Window backwardWindow(const Window& forward, int64_t rest) {
  const int64_t padding = forward.dilation * (forward.kernel - 1) - forward.padding_low;
  return {.kernel = forward.kernel,
          .stride = 1,
          .padding_low = padding,
          .padding_high = padding + rest,
          .dilation = forward.dilation,
          .input_dilation = forward.stride};
}

TransposedAxis transposedAxis(const Window& forward, int64_t extent, int64_t length, bool is_depthwise) {
  const int64_t stride = forward.stride;
  if (stride == 1 || (forward.dilation > 1 && forward.kernel > 1) || is_depthwise) {
    const int64_t rest = length - backwardWindow(forward, 0).positions(extent);
    return {.window = backwardWindow(forward, rest)};
  }
  TransposedAxis axis;
  axis.phases = stride;
  axis.made = std::min(stride, forward.kernel);
  const int64_t kernel = (forward.kernel + stride - 1) / stride;
  // Where the kernel leaves room, the result begins with a whole block of phases: then it has no more blocks than it needs.
  axis.shift = (stride - forward.padding_low % stride) % stride;
  if (forward.kernel + axis.shift > kernel * axis.made) axis.shift = 0;
  const int64_t cut = forward.padding_low + axis.shift, first = cut / stride, last = (length - 1 + cut) / stride;
  const int64_t low = kernel - 1 - first, high = last - first + kernel - extent - low;
  axis.window = {.kernel = kernel, .padding_low = low, .padding_high = high};
  axis.start = cut - first * stride;
  return axis;
}

ValueId windowColumns(Builder& b, ValueId x, const std::vector<Window>& windows, int64_t groups) {
  const Shape shape = b.shapeOf(x);
  const Counts counts = countsOf(shape, windows);
  const int64_t channels = shape.extent(1) / groups;
  ValueId ordered = orderedWindows(b, x, windows, false);
  if (groups == 1) return b.reshape(ordered, Shape{shape.extent(0), counts.kernel * channels, counts.positions});
  const ValueId split = b.reshape(ordered, Shape{shape.extent(0), counts.kernel, groups, channels, counts.positions});
  return b.reshape(b.permute(split, {0, 2, 1, 3, 4}), Shape{shape.extent(0), groups, counts.kernel * channels, counts.positions});
}

ValueId windowWeights(Builder& b, ValueId weights, int64_t groups) {
  const Shape shape = b.shapeOf(weights);
  const int64_t out = shape.extent(0) / groups, inner = shape.elementCount() / shape.extent(0);
  return b.reshape(kernelFirst(b, weights), groups == 1 ? Shape{out, inner} : Shape{groups, out, inner});
}

namespace {

/// One channel per group: products and a sum over the kernel, which has no matrix to speak of.
ValueId depthwise(Builder& b, ValueId weights, ValueId x, const std::vector<Window>& windows) {
  ValueId seen = makeWindows(b, x, windows);
  std::vector<int64_t> extents{b.shapeOf(x).extent(1)}, axes;
  extents.insert(extents.end(), windows.size(), 1);
  for (const Window& window : windows) {
    axes.push_back(static_cast<int64_t>(2 + windows.size() + axes.size()));
    extents.push_back(window.kernel);
  }
  ValueId products = b.mul(seen, b.reshape(weights, Shape(extents)));
  return b.make("sum", {products}, {{"axes", axes}, {"keep_dims", false}});
}

ValueId depthwiseWeightGradient(Builder& b, ValueId x, ValueId dy, const std::vector<Window>& windows, const Shape& weight) {
  ValueId seen = makeWindows(b, x, windows);
  std::vector<int64_t> extents = b.shapeOf(dy).extents(), axes{0};
  for (size_t i = 0; i < windows.size(); ++i) axes.push_back(static_cast<int64_t>(2 + i));
  extents.insert(extents.end(), windows.size(), 1);
  ValueId products = b.mul(seen, b.reshape(dy, Shape(extents)));
  return b.reshape(b.make("sum", {products}, {{"axes", axes}, {"keep_dims", false}}), weight);
}

}  // namespace

ValueId productWithWindows(Builder& b, ValueId weights, ValueId x, const std::vector<Window>& windows, int64_t groups) {
  Shape image = b.shapeOf(x), shape = b.shapeOf(weights);
  if (groups > 1 && groups == image.extent(1) && shape.extent(shape.rank() - 2) == 1) return depthwise(b, weights, x, windows);
  std::vector<int64_t> result{image.extent(0), groups * shape.extent(shape.rank() - 2)};
  for (size_t i = 0; i < windows.size(); ++i) result.push_back(windows[i].positions(image.extent(2 + i)));
  ValueId columns = windowColumns(b, x, windows, groups);
  return b.reshape(b.make("matmul", {weights, columns}), Shape(result));
}

ValueId weightGradient(Builder& b, ValueId x, ValueId dy, const std::vector<Window>& windows, int64_t groups) {
  Shape image = b.shapeOf(x), result = b.shapeOf(dy);
  Counts counts = countsOf(image, windows);
  int64_t batch = image.extent(0), in = image.extent(1) / groups, out = result.extent(1) / groups;
  int64_t inner = batch * counts.positions;
  std::vector<int64_t> weight{groups * out, in};
  for (const Window& window : windows) weight.push_back(window.kernel);
  if (groups > 1 && in == 1 && out == 1) return depthwiseWeightGradient(b, x, dy, windows, Shape(weight));
  std::vector<int64_t> by_kernel{groups * out};
  by_kernel.insert(by_kernel.end(), weight.begin() + 2, weight.end());
  by_kernel.push_back(in);
  ValueId split = b.reshape(dy, Shape{batch, groups * out, counts.positions});
  ValueId rows = b.permute(split, {1, 0, 2}), columns = orderedWindows(b, x, windows, true), product;
  if (groups == 1) {
    ValueId left = b.reshape(rows, Shape{out, inner}), right = b.reshape(columns, Shape{inner, counts.kernel * in});
    product = b.make("matmul", {left, right});
  } else {
    ValueId left = b.reshape(rows, Shape{groups, out, inner});
    ValueId grouped = b.permute(b.reshape(columns, Shape{inner, counts.kernel, groups, in}), {2, 0, 1, 3});
    product = b.make("matmul", {left, b.reshape(grouped, Shape{groups, inner, counts.kernel * in})});
  }
  return kernelLast(b, b.reshape(product, Shape(by_kernel)));
}

}  // namespace lockstep::graph
