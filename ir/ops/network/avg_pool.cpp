// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"
#include "ir/ops/support/sliding_window.h"

namespace lockstep::graph::avg_pool_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  LS_TRY(const std::vector<Window> windows, poolingWindows("avg_pool", x, c.attributes));
  return std::vector{f32(pooledShape(x.shape, windows))};
}

/// y times 1 / the number of elements that each window averages; `extents` are those of x.
ValueId divided(Builder& b, const Attributes& attributes, ValueId y, const std::vector<int64_t>& extents) {
  std::vector<Window> windows = windowsOf(attributes);
  Shape shape = b.shapeOf(y);
  double count = 1;
  bool padded = false;
  for (const Window& window : windows) {
    count *= static_cast<double>(window.kernel);
    padded = padded || window.padding_low > 0;
  }
  if (!padded || attributes.get<bool>("count_include_pad")) return b.mul(y, 1.0 / count);
  // The count is a product over the axes, so each has its own line of factors.
  for (size_t i = 0; i < windows.size(); ++i) {
    int64_t positions = shape.extent(2 + i);
    std::vector<int64_t> line(shape.rank(), 1);
    line[2 + i] = positions;
    Constant factors{f32(Shape(line)), {}};
    for (int64_t p = 0; p < positions; ++p) {
      int64_t from = std::max<int64_t>(0, p * windows[i].stride - windows[i].padding_low);
      int64_t to = std::min(extents[2 + i], p * windows[i].stride - windows[i].padding_low + windows[i].kernel);
      factors.data.push_back(1.0 / static_cast<double>(to - from));
    }
    y = b.mul(y, makeDense(b, std::move(factors)));
  }
  return y;
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  std::vector<Window> windows = windowsOf(g.node.attributes);
  std::vector<int64_t> extents = b.shapeOf(g.operands[0]).extents();
  ValueId dy = divided(b, g.node.attributes, g.cotangents[0], extents);
  extents.erase(extents.begin(), extents.begin() + 2);
  return {makeFold(b, overKernel(b, dy, windows), windows, extents)};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  std::vector<Window> windows = windowsOf(node.attributes);
  std::vector<int64_t> extents = b.shapeOf(operands[0]).extents(), axes;
  for (size_t i = 0; i < windows.size(); ++i) axes.push_back(static_cast<int64_t>(extents.size() + i));
  ValueId sum = b.make("sum", {makeWindows(b, operands[0], windows)}, {{"axes", axes}, {"keep_dims", false}});
  return {divided(b, node.attributes, sum, extents)};
}

std::vector<Tensor> evaluateAvgPool(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  const Shape& shape = c.operands[0]->type.shape;
  std::vector<Window> windows = windowsOf(c.node.attributes);
  bool all = c.node.attributes.get<bool>("count_include_pad");
  return evaluateByIndex(c, [&](const std::vector<int64_t>& position) {
    double sum = 0, count = 0;
    visitWindow(windows, shape, position, [&](const std::vector<int64_t>& index, bool inside) {
      if (inside) sum += x(index);
      if (inside || all) count += 1;
    });
    return sum / count;
  });
}

std::vector<OpCase> cases() {
  using List = std::vector<int64_t>;
  auto make = [](std::string_view name, Shape x, List kernel, List stride, List padding, bool all) {
    return OpCase{
        name,
        {{f32(std::move(x))}},
        {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}, {"count_include_pad", all}},
        1e-6,
        "sums of at most 9 elements"};
  };
  return {make("tiles", {2, 3, 6, 8}, {2, 2}, {2, 2}, {0, 0}, true), make("overlapping", {2, 3, 9, 7}, {3, 3}, {2, 2}, {1, 1}, true),
          make("uneven", {2, 3, 9, 7}, {3, 3}, {2, 2}, {1, 1}, false), make("leftover", {1, 2, 7, 5}, {2, 3}, {2, 3}, {0, 0}, false),
          make("line", {2, 3, 12}, {4}, {3}, {2}, false)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "avg_pool",
    .summary = "The mean of each window of x [B, C, S...].",
    .constraints =
        ConstantList<Constraint>{{"C1", "x is f32 with a rank of at least 3"},
                                 {"C2", "one number per spatial axis, kernel and stride at least 1, padding from 0 to half the kernel"},
                                 {"C3", "the kernel fits and the element count of all windows is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"kernel", AttributeKind::Integers, "elements of the window along each spatial axis"},
                                             {"stride", AttributeKind::Integers, "elements from one window to the next"},
                                             {"padding", AttributeKind::Integers, "zeros at both ends"},
                                             {"count_include_pad", AttributeKind::Boolean, "whether the zeros count in the mean"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateAvgPool,
    .cases = cases,
};

}  // namespace lockstep::graph::avg_pool_op
