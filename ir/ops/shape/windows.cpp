// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/sliding_window.h"

namespace lockstep::graph::windows_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  LS_CHECK(checkWindows("windows", "C1", c.attributes, x.shape.rank()));
  std::vector<Window> windows = windowsOf(c.attributes);
  LS_TRY(const std::vector<int64_t> positions, windowPositions("windows", "C2", x.shape, windows));
  std::vector<int64_t> extents = x.shape.extents();
  extents.resize(extents.size() - windows.size());
  extents.insert(extents.end(), positions.begin(), positions.end());
  for (const Window& window : windows) extents.push_back(window.kernel);
  LS_CHECK(checkExtents("windows", "C3", extents));
  LS_CHECK(checkValue("windows", "C4", c.attributes.get<double>("fill"), x.dtype));
  return std::vector{TensorType{x.dtype, Shape(extents)}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  std::vector<Window> windows = windowsOf(g.node.attributes);
  std::vector<int64_t> extents = g.builder.shapeOf(g.operands[0]).extents();
  extents.erase(extents.begin(), extents.end() - static_cast<std::ptrdiff_t>(windows.size()));
  return {makeFold(g.builder, g.cotangents[0], windows, extents)};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  std::vector<Window> windows = windowsOf(node.attributes);
  std::vector<int64_t> extents = b.shapeOf(operands[0]).extents();
  size_t n = windows.size(), lead = extents.size() - n;
  if (tile(windows, extents)) {  // [..., P1, K1, P2, K2] with its axes sorted: no guard, no division
    std::vector<int64_t> split(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(lead)), order = allAxes(lead + 2 * n);
    for (size_t i = 0; i < n; ++i) {
      split.insert(split.end(), {extents[lead + i] / windows[i].kernel, windows[i].kernel});
      order[lead + i] = static_cast<int64_t>(lead + 2 * i);
      order[lead + n + i] = static_cast<int64_t>(lead + 2 * i + 1);
    }
    return {b.permute(b.reshape(operands[0], Shape(split)), order)};
  }
  std::vector<int64_t> ones = extents, repeated = extents, positions, stride, padding, dilation, input_dilation;
  for (size_t i = 0; i < n; ++i) {
    ones.push_back(1);
    repeated.push_back(windows[i].kernel);
    positions.push_back(windows[i].positions(extents[lead + i]));
    stride.push_back(windows[i].stride);
    padding.push_back(windows[i].padding_low);
    dilation.push_back(windows[i].dilation);
    input_dilation.push_back(windows[i].input_dilation);
  }
  ValueId each = b.broadcastTo(b.reshape(operands[0], Shape(ones)), Shape(repeated));
  return {b.make("skew", {each},
                 {{"extents", positions},
                  {"stride", stride},
                  {"padding", padding},
                  {"dilation", dilation},
                  {"input_dilation", input_dilation},
                  {"fill", node.attributes.get<double>("fill")}})};
}

std::vector<Tensor> evaluateWindows(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  std::vector<Window> windows = windowsOf(c.node.attributes);
  std::vector<int64_t> extents = c.operands[0]->type.shape.extents(), from(extents.size());
  size_t n = windows.size(), lead = extents.size() - n;
  double fill = c.node.attributes.get<double>("fill");
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    bool exists = true;
    for (size_t i = 0; i < lead; ++i) from[i] = index[i];
    for (size_t i = 0; i < n; ++i) {
      int64_t at = index[lead + i] * windows[i].stride + index[lead + n + i] * windows[i].dilation - windows[i].padding_low;
      from[lead + i] = at / windows[i].input_dilation;
      exists = exists && at >= 0 && at % windows[i].input_dilation == 0 && from[lead + i] < extents[lead + i];
    }
    return exists ? x(from) : fill;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, const std::vector<Window>& windows, double fill) {
    Attributes attributes = attributesOf(windows);
    attributes.set("fill", fill);
    return OpCase{name, {{f32(std::move(x))}}, std::move(attributes), 0, kExactReason};
  };
  return {make("plain", {2, 5, 6}, {{.kernel = 3}, {.kernel = 2}}, 0),
          make("tiles", {2, 6, 8}, {{.kernel = 3, .stride = 3}, {.kernel = 2, .stride = 2}}, 0),
          make("padded", {2, 5, 4}, {{.kernel = 3, .padding_low = 1, .padding_high = 2}, {.kernel = 2, .padding_low = 1}}, -1.5),
          make("strided", {3, 11}, {{.kernel = 3, .stride = 2, .padding_low = 1, .padding_high = 1, .dilation = 2}}, 0),
          make("dilated", {2, 4, 3},
               {{.kernel = 3, .padding_low = 2, .padding_high = 1, .input_dilation = 2},
                {.kernel = 2, .stride = 2, .padding_low = 1, .dilation = 3, .input_dilation = 3}},
               0),
          make("cropped", {7, 9}, {{.kernel = 2, .padding_low = -2, .padding_high = -3}}, 0)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "windows",
    .summary = "The windows that a kernel sees while it slides along the last axes: [..., S...] becomes [..., positions..., kernel...].",
    .constraints =
        ConstantList<Constraint>{{"C1", "the lists have one number for each of the last axes, kernel, stride and dilations at least 1"},
                                 {"C2", "at least one window fits into each axis with its padding, whose extent is below 2^31"},
                                 {"C3", "the element count is at most 2^31 - 1"},
                                 {"C4", "the fill is a value of the element type"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes =
        ConstantList<AttributeDef>{{"kernel", AttributeKind::Integers, "elements of the window along each of the last axes"},
                                   {"stride", AttributeKind::Integers, "elements from one window to the next"},
                                   {"padding_low", AttributeKind::Integers, "elements of fill before the first one; negative: cropped"},
                                   {"padding_high", AttributeKind::Integers, "elements of fill after the last one; negative: cropped"},
                                   {"dilation", AttributeKind::Integers, "elements from one element of the window to the next"},
                                   {"input_dilation", AttributeKind::Integers, "1 + elements of fill between two elements of x"},
                                   {"fill", AttributeKind::Float, "value where the window leaves x"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateWindows,
    .cases = cases,
};

}  // namespace lockstep::graph::windows_op
