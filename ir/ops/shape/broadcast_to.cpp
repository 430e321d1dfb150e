// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::broadcast_to_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  const auto& extents = c.attributes.get<std::vector<int64_t>>("shape");
  LS_CHECK(checkExtents("broadcast_to", "C1", extents));
  Shape shape(extents);
  if (broadcastShapes(x.shape, shape) != shape)
    return violated("broadcast_to", "C2", fmt::format("{} does not broadcast to {}", toString(x.shape), toString(shape)));
  return std::vector{TensorType{x.dtype, shape}};
}

IndexMap map(const Graph& graph, const Node& node) {
  const Shape& source = graph.shapeOf(node.operands[0]);
  size_t added = graph.shapeOf(node.results[0]).rank() - source.rank();
  IndexMap map;
  for (size_t axis = 0; axis < source.rank(); ++axis)
    map.source.push_back(source.extent(axis) == 1 ? IndexExpr{} : axisExpr(static_cast<int32_t>(axis + added)));
  return map;
}

std::vector<Tensor> evaluateBroadcastTo(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  std::vector<int64_t> extents = c.operands[0]->type.shape.extents(), from(extents.size());
  return evaluateByIndex(c, [&](const std::vector<int64_t>& index) {
    size_t added = index.size() - from.size();
    for (size_t axis = 0; axis < from.size(); ++axis) from[axis] = extents[axis] == 1 ? 0 : index[axis + added];
    return x(from);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape from, std::vector<int64_t> to) {
    return OpCase{name, {{f32(std::move(from))}}, {{"shape", std::move(to)}}, 0, kExactReason};
  };
  return {make("middle", {3, 1}, {4, 3, 5}), make("row", {65}, {33, 65}), make("scalar", {}, {2, 3, 4}), make("ones", {1, 1}, {1, 1, 1}),
          make("column", {130, 1}, {130, 8})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "broadcast_to",
    .summary = "The operand repeated along axes of extent 1 and along new leading axes.",
    .constraints = ConstantList<Constraint>{{"C1", "every extent is at least 1 and the element count is at most 2^31 - 1"},
                                            {"C2", "aligned at the last axis, each extent of the operand is the new one or 1"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"shape", AttributeKind::Integers, "the new shape"}},
    .infer = infer,
    .gradient = GradientFn([](const GradientContext& g) {
      return std::vector{g.builder.sumToShape(g.cotangents[0], Shape(g.builder.shapeOf(g.operands[0])))};
    }),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluateBroadcastTo,
    .cases = cases,
};

}  // namespace lockstep::graph::broadcast_to_op
