// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::where_causal_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  size_t rank = x.shape.rank();
  if (x.dtype != DType::F32) return violated("where_causal", "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  if (rank < 2 || x.shape[rank - 2] != x.shape[rank - 1])
    return violated("where_causal", "C2", fmt::format("the last two extents of {} are not equal", toString(x.shape)));
  return std::vector{x};
}

kernel::ValueId emit(ElementEmitter& e) {
  std::span<const kernel::ValueId> index = e.index();
  kernel::ValueId row = laneSplat(e, index[index.size() - 2]);
  kernel::ValueId masked = e.builder().make(kernel::Op::Gt, {laneIndex(e), row});
  kernel::ValueId fill = laneConstant(e, DType::F32, e.node().attributes.get<double>("fill"));
  return e.builder().make(kernel::Op::Select, {e.operand(0), fill, masked});
}

std::vector<Tensor> evaluateWhereCausal(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  double fill = c.node.attributes.get<double>("fill");
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    int64_t key = index[index.size() - 1], query = index[index.size() - 2];
    return key > query ? fill : x(index);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, double fill) {
    return OpCase{name, {{f32(std::move(shape))}}, {{"fill", fill}}, 0, kExactReason};
  };
  return {make("batched", {2, 9, 9}, -1e9), make("vec4", {3, 2, 16, 16}, 0), make("one", {1, 1}, 5), make("plain", {7, 7}, -2)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "where_causal",
    .summary = "The operand where the last index is at most the one before it, else the fill (the mask of causal attention).",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "the last two extents are equal"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"fill", AttributeKind::Float, "value of the masked elements"}},
    .infer = infer,
    .gradient = GradientFn(
        [](const GradientContext& g) { return std::vector{g.builder.make("where_causal", {g.cotangents[0]}, {{"fill", 0.0}})}; }),
    .lower = ElementLowering{.emit = emit},
    .alias = NoAlias{},
    .evaluate = evaluateWhereCausal,
    .cases = cases,
    .open = [](const OpenContext& c) -> std::optional<std::vector<Opened>> {
      // It asks for positions, which are those of the axes only where the first ones count.
      OpenAxes axes = c.operands[0].axes;
      for (size_t axis = axes.size() - 2; axis < axes.size(); ++axis) {
        if (axes[axis] != 0 && !countsFirst(axes[axis], c.shapeOf(0).extent(axis), c.capacity)) return std::nullopt;
        axes[axis] = fromFirst(axes[axis], c.shapeOf(0).extent(axis), c.capacity);
      }
      return c.made({c.operands[0].value}, axes);
    },
};

}  // namespace lockstep::graph::where_causal_op
