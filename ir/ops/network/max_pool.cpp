// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"
#include "ir/ops/support/largest_smallest.h"
#include "ir/ops/support/sliding_window.h"

namespace lockstep::graph::max_pool_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  LS_TRY(const std::vector<Window> windows, poolingWindows("max_pool", x, c.attributes));
  Shape shape = pooledShape(x.shape, windows);
  return std::vector{f32(shape), i32(shape)};
}

/// The position of each kernel element in row-major order, as a tensor of `shape` [..., K...].
ValueId kernelPositions(Builder& b, const std::vector<Window>& windows, const Shape& shape) {
  std::vector<int64_t> kernel;
  for (const Window& window : windows) kernel.push_back(window.kernel);
  int64_t count = Shape(kernel).elementCount();
  return b.broadcastTo(b.reshape(b.make("arange", {}, {{"n", count}, {"dtype", DType::I32}}), Shape(kernel)), shape);
}

ValueId reduceKernel(Builder& b, std::string_view op, ValueId x, const std::vector<Window>& windows) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < windows.size(); ++i) axes.push_back(static_cast<int64_t>(b.shapeOf(x).rank() - windows.size() + i));
  return b.make(op, {x}, {{"axes", axes}, {"keep_dims", false}});
}

// Each element of x gets dy of the windows that chose it. Where windows tile x there is one for each.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  if (!g.cotangents[0].valid()) return {ValueId()};
  std::vector<Window> windows = windowsOf(g.node.attributes);
  std::vector<int64_t> extents = b.shapeOf(g.operands[0]).extents();
  extents.erase(extents.begin(), extents.begin() + 2);
  ValueId chosen = overKernel(b, g.results[1], windows), dy = overKernel(b, g.cotangents[0], windows), position;
  bool one_each = tile(windows, extents);
  if (one_each) {
    position = makeFold(b, kernelPositions(b, windows, Shape(b.shapeOf(dy))), windows, extents);
    chosen = makeFold(b, chosen, windows, extents);
    dy = makeFold(b, dy, windows, extents);
  } else {
    chosen = gatherWindows(b, chosen, windows, extents, -1);
    dy = gatherWindows(b, dy, windows, extents);
    position = kernelPositions(b, windows, Shape(b.shapeOf(dy)));
  }
  ValueId zero = b.constant(0, Shape(b.shapeOf(dy)));
  ValueId winner = b.make("equal", {position, chosen});
  ValueId dx = b.make("where", {winner, dy, zero});
  return {one_each ? dx : reduceKernel(b, "sum", dx, windows)};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  std::vector<Window> windows = windowsOf(node.attributes);
  // Padding never wins: it is at most half of a window, so an element of x is in each.
  ValueId seen = makeWindows(b, operands[0], windows, -std::numeric_limits<double>::infinity());
  Shape shape = b.shapeOf(seen);
  ValueId y = reduceKernel(b, "reduce_max", seen, windows);
  int64_t count = 1;
  for (const Window& window : windows) count *= window.kernel;
  ValueId largest = isExtremum(b, seen, overKernel(b, y, windows));
  ValueId beyond = b.constant(static_cast<double>(count), i32(shape)), position = kernelPositions(b, windows, shape);
  ValueId candidate = b.make("where", {largest, position, beyond});
  return {y, b.neg(reduceKernel(b, "reduce_max", b.neg(candidate), windows))};
}

std::vector<Tensor> evaluateMaxPool(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  const Shape& shape = c.operands[0]->type.shape;
  std::vector<Window> windows = windowsOf(c.node.attributes);
  Tensor choice{c.results[1], {}};
  std::vector<Tensor> y = evaluateByIndex(c, [&](const std::vector<int64_t>& position) {
    double best = 0;
    int64_t chosen = -1, next = 0;
    visitWindow(windows, shape, position, [&](const std::vector<int64_t>& index, bool inside) {
      if (inside && (chosen < 0 || x(index) > best || (std::isnan(x(index)) && !std::isnan(best)))) {
        best = x(index);
        chosen = next;
      }
      ++next;
    });
    choice.data.push_back(static_cast<double>(chosen));
    return best;
  });
  return {std::move(y.front()), std::move(choice)};
}

std::vector<OpCase> cases() {
  using List = std::vector<int64_t>;
  auto make = [](std::string_view name, Shape x, List kernel, List stride, List padding) {
    return OpCase{name,
                  {{f32(std::move(x))}},
                  {{"kernel", std::move(kernel)}, {"stride", std::move(stride)}, {"padding", std::move(padding)}},
                  0,
                  kExactReason};
  };
  return {make("tiles", {2, 3, 6, 8}, {2, 2}, {2, 2}, {0, 0}), make("overlapping", {2, 3, 9, 7}, {3, 3}, {2, 2}, {1, 1}),
          make("leftover", {1, 2, 7, 5}, {2, 3}, {2, 3}, {0, 0}), make("dense", {1, 2, 5, 6}, {3, 2}, {1, 1}, {1, 1}),
          make("line", {2, 3, 12}, {4}, {4}, {0})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "max_pool",
    .summary =
        "The largest element of each window of x [B, C, S...], NaN where one of them is, and its row-major position in the window; the "
        "first one of equals.",
    .constraints =
        ConstantList<Constraint>{{"C1", "x is f32 with a rank of at least 3"},
                                 {"C2", "one number per spatial axis, kernel and stride at least 1, padding from 0 to half the kernel"},
                                 {"C3", "the kernel fits and the element count of all windows is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"kernel", AttributeKind::Integers, "elements of the window along each spatial axis"},
                                             {"stride", AttributeKind::Integers, "elements from one window to the next"},
                                             {"padding", AttributeKind::Integers, "elements at both ends, which never win"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateMaxPool,
    .cases = cases,
};

}  // namespace lockstep::graph::max_pool_op
