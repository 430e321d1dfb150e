// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/convolution.h"

namespace lockstep::graph::conv_transpose_op {
namespace {

std::vector<Window> backwardWindows(const Attributes& attributes, const Shape& w) {
  std::vector<Window> windows = convolutionWindows(attributes, w);
  const auto& output_padding = attributes.get<std::vector<int64_t>>("output_padding");
  for (size_t i = 0; i < windows.size(); ++i) windows[i] = backwardWindow(windows[i], output_padding[i]);
  return windows;
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &w = c.operands[1];
  if (x.dtype != DType::F32 || w.dtype != DType::F32)
    return violated("conv_transpose", "C1", fmt::format("operands are {} and {}, wanted f32", toString(x), toString(w)));
  if (x.shape.rank() < 3 || x.shape.rank() != w.shape.rank()) {
    return violated("conv_transpose", "C2",
                    fmt::format("x is {} and w is {}, wanted [B, C, S...] and [C, O/groups, K...]", toString(x), toString(w)));
  }
  size_t n = x.shape.rank() - 2;
  LS_CHECK(checkWindows("conv_transpose", "C3", c.attributes, n));
  const auto& output_padding = c.attributes.get<std::vector<int64_t>>("output_padding");
  std::vector<Window> windows = convolutionWindows(c.attributes, w.shape);
  if (windows.size() != n || output_padding.size() != n)
    return violated("conv_transpose", "C3", fmt::format("wanted {} numbers a list", n));
  for (size_t i = 0; i < n; ++i) {
    if (windows[i].padding_low < 0 || output_padding[i] < 0 || output_padding[i] >= windows[i].stride) {
      return violated(
          "conv_transpose", "C3",
          fmt::format("padding {} and output_padding {} with stride {}", windows[i].padding_low, output_padding[i], windows[i].stride));
    }
  }
  int64_t groups = c.attributes.get<int64_t>("groups"), in = x.shape.extent(1);
  if (w.shape.extent(0) != in) {
    return violated("conv_transpose", "C4",
                    fmt::format("expected x [B, C, S...] with {} channels, as the weights {} have, got {} in {}", w.shape.extent(0),
                                toString(w.shape), in, toString(x)));
  }
  if (groups < 1 || in % groups != 0) {
    return violated("conv_transpose", "C4",
                    fmt::format("{} groups do not fit {} channels of x and weights {}", groups, in, toString(w.shape)));
  }
  for (const Window& window : windows) {
    if (window.dilation * (window.kernel - 1) > INT32_MAX)
      return violated("conv_transpose", "C5", fmt::format("the kernel reaches over {} times {} elements", window.kernel, window.dilation));
  }
  std::vector<Window> back = backwardWindows(c.attributes, w.shape);
  LS_TRY(const std::vector<int64_t> positions, windowPositions("conv_transpose", "C5", x.shape, back));
  int64_t out = w.shape.extent(1) * groups;
  const bool is_depthwise = groups == in && w.shape.extent(1) == 1;
  std::vector<int64_t> result{x.shape.extent(0), out}, seen{x.shape.extent(0), in}, forward{x.shape.extent(0), out};
  for (size_t i = 0; i < n; ++i) {
    result.push_back(positions[i]);
    const Window window = transposedAxis(windows[i], x.shape.extent(2 + i), positions[i], is_depthwise).window;
    seen.insert(seen.end(), {window.positions(x.shape.extent(2 + i)), window.kernel});
    forward.insert(forward.end(), {x.shape.extent(2 + i), windows[i].kernel});
  }
  for (const std::vector<int64_t>& extents : {result, seen, forward}) LS_CHECK(checkExtents("conv_transpose", "C6", extents));
  return std::vector{f32(Shape(result))};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], w = g.operands[1], dy = g.cotangents[0];
  const Attributes& attributes = g.node.attributes;
  int64_t groups = attributes.get<int64_t>("groups");
  auto copied = [&](std::string_view name) { return std::pair{std::string(name), *attributes.find(name)}; };
  ValueId dx = b.make("conv", {dy, w}, {copied("stride"), copied("padding"), copied("dilation"), copied("groups")});
  return {dx, weightGradient(b, dy, x, convolutionWindows(attributes, b.shapeOf(w)), groups)};
}

/// w [C, O/groups, K...] as [(G,) made phases * O/G, kernel * C/G], the kernel flipped.
ValueId phasedWeights(Builder& b, ValueId w, const std::vector<TransposedAxis>& axes, int64_t groups) {
  int64_t in = b.shapeOf(w).extent(0) / groups, out = b.shapeOf(w).extent(1), rows = out, columns = in;
  std::vector<int64_t> split{groups, in, out}, kernel_axes, order{0};
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t kernel = axes[i].window.kernel, padded = axes[i].made * kernel, shift = axes[i].shift;
    int64_t missing = padded - b.shapeOf(w).extent(2 + i);
    if (missing > 0) {
      w = b.make("pad", {w}, {{"axis", static_cast<int64_t>(2 + i)}, {"before", shift}, {"after", missing - shift}, {"value", 0.0}});
    }
    kernel_axes.push_back(static_cast<int64_t>(split.size()));
    order.push_back(kernel_axes.back() + 1);
    split.insert(split.end(), {kernel, axes[i].made});
    rows *= axes[i].made;
    columns *= kernel;
  }
  ValueId turned = b.make("flip", {b.reshape(w, Shape(split))}, {{"axes", kernel_axes}});
  order.push_back(2);
  order.insert(order.end(), kernel_axes.begin(), kernel_axes.end());
  order.push_back(1);
  return b.reshape(b.permute(turned, order), groups == 1 ? Shape{rows, columns} : Shape{groups, rows, columns});
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  Shape x = b.shapeOf(operands[0]), w = b.shapeOf(operands[1]);
  int64_t groups = node.attributes.get<int64_t>("groups");
  std::vector<Window> forward = convolutionWindows(node.attributes, w), back = backwardWindows(node.attributes, w);
  const bool is_depthwise = groups == x.extent(1) && w.extent(1) == 1;
  std::vector<TransposedAxis> axes;
  std::vector<Window> windows;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < back.size(); ++i) {
    lengths.push_back(back[i].positions(x.extent(2 + i)));
    axes.push_back(transposedAxis(forward[i], x.extent(2 + i), lengths.back(), is_depthwise));
    windows.push_back(axes.back().window);
  }
  ValueId weights = phasedWeights(b, operands[1], axes, groups);
  ValueId y = productWithWindows(b, weights, operands[0], windows, groups);
  // [B, G, phases..., O/G, positions...]: each phase beside its neighbours.
  const auto n = static_cast<int64_t>(axes.size());
  std::vector<int64_t> split{x.extent(0), groups}, joined{x.extent(0), w.extent(1) * groups}, order{0, 1, 2 + n};
  for (const TransposedAxis& axis : axes) split.push_back(axis.made);
  split.push_back(w.extent(1));
  for (size_t i = 0; i < axes.size(); ++i) {
    split.push_back(b.shapeOf(y).extent(2 + i));
    joined.push_back(axes[i].phases * split.back());
    order.insert(order.end(), {static_cast<int64_t>(3 + axes.size() + i), static_cast<int64_t>(2 + i)});
  }
  if (joined != b.shapeOf(y).extents()) {
    y = b.reshape(y, Shape(split));
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t missing = axes[i].phases - axes[i].made;
      if (missing == 0) continue;
      y = b.make("pad", {y}, {{"axis", static_cast<int64_t>(2 + i)}, {"before", int64_t{0}}, {"after", missing}, {"value", 0.0}});
    }
    y = b.reshape(b.permute(y, order), Shape(joined));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (lengths[i] == joined[2 + i]) continue;
    y = b.make("narrow", {y}, {{"axis", static_cast<int64_t>(2 + i)}, {"start", axes[i].start}, {"length", lengths[i]}});
  }
  return {y};
}

std::vector<Tensor> evaluateConvTranspose(const EvaluateContext& c) {
  const Tensor &x = *c.operands[0], &w = *c.operands[1];
  Tensor y{c.results[0], std::vector<double>(static_cast<size_t>(c.results[0].shape.elementCount()), 0.0)};
  const Shape& shape = y.type.shape;
  std::vector<Window> windows = convolutionWindows(c.node.attributes, w.type.shape);
  std::vector<int64_t> strides = shape.strides(), x_extents = x.type.shape.extents(), w_strides = w.type.shape.strides();
  int64_t groups = c.node.attributes.get<int64_t>("groups"), in = x_extents[1] / groups, out = w.type.shape.extent(1);
  std::vector<int64_t> index(x_extents.size(), 0), kernel_extents = w.type.shape.extents();
  kernel_extents[0] = 1;
  size_t flat = 0;
  // Every element of x adds its multiple of the kernel.
  do {
    std::vector<int64_t> at(kernel_extents.size(), 0);
    do {
      int64_t target = index[0] * strides[0] + (index[1] / in * out + at[1]) * strides[1];
      int64_t weight = index[1] * w_strides[0] + at[1] * w_strides[1];
      bool inside = true;
      for (size_t axis = 2; axis < at.size(); ++axis) {
        const Window& window = windows[axis - 2];
        int64_t to = index[axis] * window.stride + at[axis] * window.dilation - window.padding_low;
        inside = inside && to >= 0 && to < shape.extent(axis);
        target += to * strides[axis];
        weight += at[axis] * w_strides[axis];
      }
      if (inside) y.data[static_cast<size_t>(target)] += x.data[flat] * w.data[static_cast<size_t>(weight)];
    } while (nextIndex(at, kernel_extents));
    ++flat;
  } while (nextIndex(index, x_extents));
  return {std::move(y)};
}

std::vector<OpCase> cases() {
  using List = std::vector<int64_t>;
  auto make = [](std::string_view name, Shape x, Shape w, List stride, List padding, List dilation, List rest, int64_t groups) {
    return OpCase{name,
                  {{f32(std::move(x)), -1, 1}, {f32(std::move(w)), -1, 1}},
                  {{"stride", std::move(stride)},
                   {"padding", std::move(padding)},
                   {"dilation", std::move(dilation)},
                   {"output_padding", std::move(rest)},
                   {"groups", groups}},
                  2e-6,
                  "sums of at most 1000 products"};
  };
  return {make("plain", {2, 3, 4, 5}, {3, 4, 3, 2}, {1, 1}, {0, 0}, {1, 1}, {0, 0}, 1),
          make("upsampling", {2, 3, 4, 3}, {3, 2, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {0, 0}, 1),
          make("output_padding", {1, 2, 3, 4}, {2, 3, 3, 3}, {2, 3}, {1, 1}, {1, 1}, {1, 2}, 1),
          make("grouped", {2, 6, 3, 4}, {6, 2, 3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 0}, 3),
          make("dilated", {1, 2, 4, 3}, {2, 3, 3, 2}, {1, 2}, {3, 1}, {2, 3}, {0, 1}, 1),
          make("gaps", {2, 3, 4, 3}, {3, 2, 2, 1}, {3, 2}, {1, 0}, {1, 1}, {2, 1}, 1),
          make("line", {2, 3, 9}, {3, 4, 5}, {2}, {2}, {1}, {1}, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "conv_transpose",
    .summary = "The adjoint of conv by its x: each element of x [B, C, S...] adds its multiple of w [C, O/groups, K...] to the result.",
    .constraints =
        ConstantList<Constraint>{
            {"C1", "operands are f32"},
            {"C2", "x and w have the same rank of at least 3"},
            {"C3", "one number per spatial axis; stride and dilation at least 1, padding at least 0, output_padding below stride"},
            {"C4", "groups divides the channels of x, and w has them"},
            {"C5", "the result has at least one element along each axis, padded extents are below 2^31"},
            {"C6", "the element counts of the result and of the windows are at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x", "w"},
    .attributes =
        ConstantList<AttributeDef>{{"stride", AttributeKind::Integers, "elements of the result from one element of x to the next"},
                                   {"padding", AttributeKind::Integers, "elements of the result that are left out at both ends"},
                                   {"dilation", AttributeKind::Integers, "elements from one element of the kernel to the next"},
                                   {"output_padding", AttributeKind::Integers, "elements of the result added at the end"},
                                   {"groups", AttributeKind::Integer, "as of conv"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateConvTranspose,
    .cases = cases,
    .mixed = MixedRole::Product,
};

}  // namespace lockstep::graph::conv_transpose_op
