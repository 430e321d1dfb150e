// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::narrow_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis"), start = c.attributes.get<int64_t>("start"),
          length = c.attributes.get<int64_t>("length");
  LS_CHECK(checkAxis("narrow", "C1", axis, x.shape.rank()));
  int64_t extent = x.shape.extent(static_cast<size_t>(axis));
  if (start < 0 || length < 1 || length > extent || start > extent - length) {
    return violated("narrow", "C2",
                    fmt::format("{} elements from {} on do not lie in the {} elements of axis {}", length, start, extent, axis));
  }
  std::vector<Dim> dims = x.shape.dims();
  dims[static_cast<size_t>(axis)] = length;
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  const Attributes& attributes = g.node.attributes;
  int64_t axis = attributes.get<int64_t>("axis"), start = attributes.get<int64_t>("start"), length = attributes.get<int64_t>("length");
  int64_t extent = g.builder.shapeOf(g.operands[0]).extent(static_cast<size_t>(axis));
  return {
      g.builder.make("pad", {g.cotangents[0]}, {{"axis", axis}, {"before", start}, {"after", extent - start - length}, {"value", 0.0}})};
}

IndexMap map(const Graph& graph, const Node& node) {
  IndexMap map = identityMap(graph.shapeOf(node.results[0]).rank());
  map.source[static_cast<size_t>(node.attributes.get<int64_t>("axis"))].offset = node.attributes.get<int64_t>("start");
  return map;
}

std::vector<Tensor> evaluateNarrow(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  size_t axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  int64_t start = c.node.attributes.get<int64_t>("start");
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    index[axis] += start;
    return x(index);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, int64_t axis, int64_t start, int64_t length) {
    return OpCase{name, {{f32(std::move(shape))}}, {{"axis", axis}, {"start", start}, {"length", length}}, 0, kExactReason};
  };
  return {make("first", {4, 5, 6}, 0, 1, 2), make("middle", {4, 5, 6}, 1, 3, 2), make("last", {4, 5, 6}, 2, 1, 4),
          make("all", {7}, 0, 0, 7)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "narrow",
    .summary = "A range of one axis.",
    .constraints = ConstantList<Constraint>{{"C1", "the axis is within the rank"},
                                            {"C2", "the range has at least one element and lies within the axis"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "which axis"},
                                             {"start", AttributeKind::Integer, "first element of the range"},
                                             {"length", AttributeKind::Integer, "elements of the range"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluateNarrow,
    .cases = cases,
};

}  // namespace lockstep::graph::narrow_op
