// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/sliding_window.h"

namespace lockstep::graph::fold_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& y = c.operands[0];
  const auto& extents = c.attributes.get<std::vector<int64_t>>("extents");
  if (!isNumber(y.dtype)) return violated("fold", "C1", fmt::format("operand is {}, wanted numbers", toString(y)));
  LS_CHECK(checkWindows("fold", "C2", c.attributes, y.shape.rank() / 2));
  std::vector<Window> windows = windowsOf(c.attributes);
  if (extents.size() != windows.size())
    return violated("fold", "C2", fmt::format("extents has {} numbers, wanted {}", extents.size(), windows.size()));
  std::vector<int64_t> shape = y.shape.extents();
  size_t lead = shape.size() - 2 * windows.size();
  std::vector<int64_t> seen(shape.begin() + static_cast<std::ptrdiff_t>(lead), shape.end());
  shape.resize(lead);
  shape.insert(shape.end(), extents.begin(), extents.end());
  LS_CHECK(checkExtents("fold", "C3", shape));
  LS_TRY(std::vector<int64_t> wanted, windowPositions("fold", "C3", Shape(shape), windows));
  for (const Window& window : windows) wanted.push_back(window.kernel);
  if (seen != wanted) {
    return violated("fold", "C3",
                    fmt::format("the last extents of {} are not the [{}] of windows over [{}]", toString(y.shape), fmt::join(wanted, ","),
                                fmt::join(extents, ",")));
  }
  return std::vector{TensorType{y.dtype, Shape(shape)}};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  std::vector<Window> windows = windowsOf(node.attributes);
  const auto& extents = node.attributes.get<std::vector<int64_t>>("extents");
  Shape y = b.shapeOf(operands[0]);
  size_t n = windows.size(), lead = y.rank() - 2 * n;
  if (tile(windows, extents)) {
    std::vector<int64_t> order = allAxes(y.rank());
    for (size_t i = 0; i < n; ++i) {
      order[lead + 2 * i] = static_cast<int64_t>(lead + i);
      order[lead + 2 * i + 1] = static_cast<int64_t>(lead + n + i);
    }
    std::vector<int64_t> x = y.extents();
    x.resize(lead);
    x.insert(x.end(), extents.begin(), extents.end());
    return {b.reshape(b.permute(operands[0], order), Shape(x))};
  }
  std::vector<int64_t> kernel_axes;
  for (size_t i = 0; i < n; ++i) kernel_axes.push_back(static_cast<int64_t>(lead + n + i));
  ValueId gathered = gatherWindows(b, operands[0], windows, extents);
  return {b.make("sum", {gathered}, {{"axes", kernel_axes}, {"keep_dims", false}})};
}

std::vector<Tensor> evaluateFold(const EvaluateContext& c) {
  const Tensor& y = *c.operands[0];
  Tensor x{c.results[0], std::vector<double>(static_cast<size_t>(c.results[0].shape.elementCount()), 0.0)};
  std::vector<Window> windows = windowsOf(c.node.attributes);
  std::vector<int64_t> extents = x.type.shape.extents(), strides = x.type.shape.strides();
  std::vector<int64_t> seen = y.type.shape.extents(), index(seen.size(), 0);
  size_t n = windows.size(), lead = extents.size() - n, flat = 0;
  do {
    int64_t target = 0;
    bool exists = true;
    for (size_t i = 0; i < lead; ++i) target += index[i] * strides[i];
    for (size_t i = 0; i < n; ++i) {
      int64_t at = index[lead + i] * windows[i].stride + index[lead + n + i] * windows[i].dilation - windows[i].padding_low;
      int64_t to = at / windows[i].input_dilation;
      exists = exists && at >= 0 && at % windows[i].input_dilation == 0 && to < extents[lead + i];
      target += to * strides[lead + i];
    }
    if (exists) x.data[static_cast<size_t>(target)] += y.data[flat];
    ++flat;
  } while (nextIndex(index, seen));
  return {std::move(x)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape y, const std::vector<Window>& windows, std::vector<int64_t> extents) {
    Attributes attributes = attributesOf(windows);
    attributes.set("extents", std::move(extents));
    return OpCase{name, {{f32(std::move(y))}}, std::move(attributes), 1e-6, "sums of at most 9 elements"};
  };
  return {make("plain", {2, 3, 5, 3, 2}, {{.kernel = 3}, {.kernel = 2}}, {5, 6}),
          make("tiles", {2, 2, 4, 3, 2}, {{.kernel = 3, .stride = 3}, {.kernel = 2, .stride = 2}}, {6, 8}),
          make("padded", {2, 6, 4, 3, 2}, {{.kernel = 3, .padding_low = 1, .padding_high = 2}, {.kernel = 2, .padding_low = 1}}, {5, 4}),
          make("strided", {3, 5, 3}, {{.kernel = 3, .stride = 2, .padding_low = 1, .padding_high = 1, .dilation = 2}}, {11}),
          make("dilated", {2, 8, 3}, {{.kernel = 3, .padding_low = 2, .padding_high = 1, .input_dilation = 2}}, {4}),
          make("cropped", {7, 3, 2}, {{.kernel = 2, .padding_low = -2, .padding_high = -3}}, {9})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "fold",
    .summary = "Each element of windows added where it was taken from: the adjoint of windows.",
    .constraints =
        ConstantList<Constraint>{
            {"C1", "the operand has numbers"},
            {"C2", "the lists have one number for each axis, kernel, stride and dilations at least 1"},
            {"C3", "the last axes of the operand are the positions and kernels of windows over an operand of these extents"}},
    .operands = ConstantList<std::string_view>{"y"},
    .attributes = ConstantList<AttributeDef>{{"extents", AttributeKind::Integers, "the last axes of the result"},
                                             {"kernel", AttributeKind::Integers, "elements of the window along each of the last axes"},
                                             {"stride", AttributeKind::Integers, "elements from one window to the next"},
                                             {"padding_low", AttributeKind::Integers, "as of windows"},
                                             {"padding_high", AttributeKind::Integers, "as of windows"},
                                             {"dilation", AttributeKind::Integers, "elements from one element of the window to the next"},
                                             {"input_dilation", AttributeKind::Integers, "as of windows"}},
    .infer = infer,
    .gradient = GradientFn(
        [](const GradientContext& g) { return std::vector{makeWindows(g.builder, g.cotangents[0], windowsOf(g.node.attributes))}; }),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateFold,
    .cases = cases,
};

}  // namespace lockstep::graph::fold_op
