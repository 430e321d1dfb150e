// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/convolution.h"

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

/// [B, C, positions..., K...] with the kernel axes after the channels, or the positions after the batch.
ValueId orderedWindows(Builder& b, ValueId x, const std::vector<Window>& windows, bool positions_first) {
  auto n = static_cast<int64_t>(windows.size());
  std::vector<int64_t> order{0};
  auto appendAxes = [&](int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) order.push_back(first + i);
  };
  if (positions_first) appendAxes(2, n);
  order.push_back(1);
  appendAxes(2 + n, n);
  if (!positions_first) appendAxes(2, n);
  return b.permute(makeWindows(b, x, windows), order);
}

}  // namespace

std::vector<Window> convolutionWindows(const Attributes& attributes, const Shape& weight) {
  std::vector<Window> windows = windowsOf(attributes);
  for (size_t i = 0; i < windows.size(); ++i) windows[i].kernel = weight.extent(2 + i);
  return windows;
}

ValueId windowColumns(Builder& b, ValueId x, const std::vector<Window>& windows, int64_t groups) {
  Shape shape = b.shapeOf(x);
  Counts counts = countsOf(shape, windows);
  std::vector<int64_t> columns{shape.extent(0)};
  if (groups > 1) columns.push_back(groups);
  columns.insert(columns.end(), {shape.extent(1) / groups * counts.kernel, counts.positions});
  return b.reshape(orderedWindows(b, x, windows, false), Shape(columns));
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
  ValueId split = b.reshape(dy, Shape{batch, groups * out, counts.positions});
  ValueId rows = b.permute(split, {1, 0, 2}), columns = orderedWindows(b, x, windows, true);
  if (groups == 1) {
    ValueId left = b.reshape(rows, Shape{out, inner}), right = b.reshape(columns, Shape{inner, in * counts.kernel});
    return b.reshape(b.make("matmul", {left, right}), Shape(weight));
  }
  ValueId left = b.reshape(rows, Shape{groups, out, inner});
  ValueId grouped = b.permute(b.reshape(columns, Shape{inner, groups, in * counts.kernel}), {1, 0, 2});
  return b.reshape(b.make("matmul", {left, grouped}), Shape(weight));
}

}  // namespace lockstep::graph
