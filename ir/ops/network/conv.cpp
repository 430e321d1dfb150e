// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/convolution.h"

namespace lockstep::graph::conv_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &w = c.operands[1];
  if (x.dtype != DType::F32 || w.dtype != DType::F32)
    return violated("conv", "C1", fmt::format("operands are {} and {}, wanted f32", toString(x), toString(w)));
  if (x.shape.rank() < 3 || x.shape.rank() != w.shape.rank()) {
    return violated("conv", "C2",
                    fmt::format("x is {} and w is {}, wanted [B, C, S...] and [O, C/groups, K...]", toString(x), toString(w)));
  }
  LS_CHECK(checkWindows("conv", "C3", c.attributes, x.shape.rank() - 2));
  std::vector<Window> windows = convolutionWindows(c.attributes, w.shape);
  bool padded = true;
  for (const Window& window : windows) padded = padded && window.padding_low >= 0;
  if (windows.size() != x.shape.rank() - 2 || !padded)
    return violated("conv", "C3", fmt::format("wanted {} numbers a list, and padding of at least 0", x.shape.rank() - 2));
  int64_t groups = c.attributes.get<int64_t>("groups"), in = x.shape.extent(1), out = w.shape.extent(0);
  if (groups >= 1 && in != w.shape.extent(1) * groups) {
    return violated("conv", "C4",
                    fmt::format("expected x [B, C, S...] with {} channels, which the weights {} take in {} {}, got {} in {}",
                                w.shape.extent(1) * groups, toString(w.shape), groups, groups == 1 ? "group" : "groups", in, toString(x)));
  }
  if (groups < 1 || in % groups != 0 || out % groups != 0 || w.shape.extent(1) != in / groups) {
    return violated("conv", "C4", fmt::format("{} groups do not fit {} channels of x and weights {}", groups, in, toString(w.shape)));
  }
  LS_TRY(const std::vector<int64_t> positions, windowPositions("conv", "C5", x.shape, windows));
  const bool is_depthwise = groups == in && groups == out;
  std::vector<int64_t> result{x.shape.extent(0), out}, seen{x.shape.extent(0), in}, back{x.shape.extent(0), out};
  for (size_t i = 0; i < windows.size(); ++i) {
    result.push_back(positions[i]);
    seen.insert(seen.end(), {positions[i], windows[i].kernel});
    const Window window = transposedAxis(windows[i], positions[i], x.shape.extent(2 + i), is_depthwise).window;
    back.insert(back.end(), {window.positions(positions[i]), window.kernel});
  }
  // The windows have no memory, but kernels count them.
  for (const std::vector<int64_t>& extents : {result, seen, back}) LS_CHECK(checkExtents("conv", "C6", extents));
  return std::vector{f32(Shape(result))};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0], w = g.operands[1], dy = g.cotangents[0];
  Shape image = b.shapeOf(x), result = b.shapeOf(dy);
  std::vector<Window> windows = convolutionWindows(g.node.attributes, b.shapeOf(w));
  int64_t groups = g.node.attributes.get<int64_t>("groups");
  // The last elements that no window reached: the floor in the number of positions.
  std::vector<int64_t> rest;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    int64_t reached = (result.extent(2 + i) - 1) * window.stride + (window.kernel - 1) * window.dilation + 1;
    rest.push_back(image.extent(2 + i) + 2 * window.padding_low - reached);
  }
  Attributes attributes = g.node.attributes;
  attributes.set("output_padding", std::move(rest));
  ValueId dx = b.make("conv_transpose", {dy, w}, std::move(attributes));
  return {dx, weightGradient(b, x, dy, windows, groups)};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  const std::vector<Window> windows = convolutionWindows(node.attributes, b.shapeOf(operands[1]));
  const int64_t groups = node.attributes.get<int64_t>("groups");
  return {productWithWindows(b, windowWeights(b, operands[1], groups), operands[0], windows, groups)};
}

std::vector<Tensor> evaluateConv(const EvaluateContext& c) {
  const Shape &x_shape = c.operands[0]->type.shape, &w_shape = c.operands[1]->type.shape;
  ElementReader x(*c.operands[0]), w(*c.operands[1]);
  std::vector<Window> windows = convolutionWindows(c.node.attributes, w_shape);
  size_t rank = x_shape.rank();
  int64_t groups = c.node.attributes.get<int64_t>("groups"), in = w_shape.extent(1), out = w_shape.extent(0) / groups;
  std::vector<int64_t> extents = w_shape.extents(), from(rank);
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    double sum = 0;
    std::vector<int64_t> at(rank, 0);  // of w; axis 0 stands still
    at[0] = index[1];
    extents[0] = index[1] + 1;
    from[0] = index[0];
    do {
      bool inside = true;
      for (size_t axis = 2; axis < rank; ++axis) {
        const Window& window = windows[axis - 2];
        from[axis] = index[axis] * window.stride + at[axis] * window.dilation - window.padding_low;
        inside = inside && from[axis] >= 0 && from[axis] < x_shape.extent(axis);
      }
      if (!inside) continue;
      from[1] = index[1] / out * in + at[1];
      sum += x(from) * w(at);
    } while (nextIndex(at, extents));
    return sum;
  });
}

std::vector<OpCase> cases() {
  using List = std::vector<int64_t>;
  auto make = [](std::string_view name, Shape x, Shape w, List stride, List padding, List dilation, int64_t groups) {
    return OpCase{name,
                  {{f32(std::move(x)), -1, 1}, {f32(std::move(w)), -1, 1}},
                  {{"stride", std::move(stride)}, {"padding", std::move(padding)}, {"dilation", std::move(dilation)}, {"groups", groups}},
                  2e-6,
                  "sums of at most 1000 products"};
  };
  return {make("same", {2, 3, 6, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1),
          make("strided", {2, 4, 9, 8}, {6, 4, 3, 5}, {2, 2}, {1, 2}, {1, 1}, 1),
          make("grouped", {2, 6, 5, 5}, {9, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 3),
          make("depthwise", {1, 5, 8, 6}, {5, 1, 3, 3}, {1, 2}, {1, 1}, {1, 1}, 5),
          make("dilated", {1, 2, 9, 9}, {3, 2, 3, 2}, {2, 1}, {2, 0}, {2, 3}, 1),
          make("pointwise", {3, 8, 4, 4}, {4, 8, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1),
          make("strided_pointwise", {2, 3, 5, 4}, {4, 3, 1, 1}, {2, 2}, {0, 0}, {1, 1}, 1),
          make("leftover", {1, 2, 8, 7}, {2, 2, 3, 2}, {3, 3}, {0, 0}, {1, 1}, 1),
          make("line", {2, 3, 21}, {4, 3, 5}, {1}, {2}, {1}, 1),
          make("volume", {1, 2, 4, 3, 5}, {3, 2, 2, 2, 3}, {1, 1, 2}, {0, 1, 1}, {1, 1, 1}, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "conv",
    .summary = "Cross-correlation of x [B, C, S...] with w [O, C/groups, K...] and zero padding: [B, O, positions...].",
    .constraints =
        ConstantList<Constraint>{{"C1", "operands are f32"},
                                 {"C2", "x and w have the same rank of at least 3"},
                                 {"C3", "the lists have one number per spatial axis, stride and dilation at least 1, padding at least 0"},
                                 {"C4", "groups divides the channels of x and of the result, and w has C/groups of them"},
                                 {"C5", "the kernel fits into the padded extents"},
                                 {"C6", "the element counts of the result and of the windows are at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x", "w"},
    .attributes =
        ConstantList<AttributeDef>{{"stride", AttributeKind::Integers, "elements from one window to the next"},
                                   {"padding", AttributeKind::Integers, "zeros at both ends"},
                                   {"dilation", AttributeKind::Integers, "elements from one element of the kernel to the next"},
                                   {"groups", AttributeKind::Integer, "result channels of a group see the input channels of it only"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateConv,
    .cases = cases,
    .mixed = MixedRole::Product,
};

}  // namespace lockstep::graph::conv_op
