// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support/common.h"

namespace lockstep::graph::permute_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  const auto& permutation = c.attributes.get<std::vector<int64_t>>("permutation");
  std::vector<int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != allAxes(x.shape.rank()))
    return violated("permute", "C1",
                    fmt::format("[{}] is not a permutation of the axes of {}", fmt::join(permutation, ","), toString(x.shape)));
  std::vector<Dim> dims;
  for (int64_t axis : permutation) dims.push_back(x.shape[static_cast<size_t>(axis)]);
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  const auto& permutation = g.node.attributes.get<std::vector<int64_t>>("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {g.builder.permute(g.cotangents[0], std::move(inverse))};
}

IndexMap map(const Graph&, const Node& node) {
  const auto& permutation = node.attributes.get<std::vector<int64_t>>("permutation");
  IndexMap map;
  map.source.resize(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) map.source[static_cast<size_t>(permutation[i])] = axisExpr(static_cast<int32_t>(i));
  return map;
}

ValueId lift(const LiftContext& c) {
  std::vector<int64_t> permutation{0};
  for (const int64_t axis : c.node.attributes.get<std::vector<int64_t>>("permutation")) permutation.push_back(axis + 1);
  return c.builder.permute(c.operands[0], std::move(permutation));
}

std::vector<Tensor> evaluatePermute(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  const auto& permutation = c.node.attributes.get<std::vector<int64_t>>("permutation");
  std::vector<int64_t> from(permutation.size());
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    for (size_t i = 0; i < permutation.size(); ++i) from[static_cast<size_t>(permutation[i])] = index[i];
    return x(from);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, std::vector<int64_t> permutation) {
    return OpCase{name, {{f32(std::move(shape))}}, {{"permutation", std::move(permutation)}}, 0, kExactReason};
  };
  return {make("transpose", {33, 65}, {1, 0}), make("cycle", {3, 5, 4}, {2, 0, 1}), make("heads", {2, 8, 4, 16}, {0, 2, 1, 3}),
          make("four", {3, 5, 4, 7}, {3, 1, 0, 2}), make("scalar", {}, {})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "permute",
    .summary = "Axes in another order: axis i of the result is axis permutation[i] of the operand.",
    .constraints = ConstantList<Constraint>{{"C1", "permutation names each axis once"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes =
        ConstantList<AttributeDef>{{"permutation", AttributeKind::Integers, "the axis of the operand for each axis of the result"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluatePermute,
    .cases = cases,
    .lift = lift,
};

}  // namespace lockstep::graph::permute_op
