// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::pad_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  int64_t axis = c.attributes.get<int64_t>("axis"), before = c.attributes.get<int64_t>("before"),
          after = c.attributes.get<int64_t>("after");
  LS_CHECK(checkAxis("pad", "C1", axis, x.shape.rank()));
  int64_t extent = x.shape.extent(static_cast<size_t>(axis));
  if (before < 0 || after < 0)
    return violated("pad", "C2", fmt::format("{} elements before and {} after, wanted at least 0", before, after));
  if (before > INT32_MAX || after > INT32_MAX)
    return violated("pad", "C3", fmt::format("{} elements before and {} after are more than 32 bits can count", before, after));
  std::vector<int64_t> extents = x.shape.extents();
  extents[static_cast<size_t>(axis)] = before + extent + after;
  LS_CHECK(checkExtents("pad", "C3", extents));
  LS_CHECK(checkValue("pad", "C4", c.attributes.get<double>("value"), x.dtype));
  std::vector<Dim> dims = x.shape.dims();
  if (before + after > 0) dims[static_cast<size_t>(axis)] = before + extent + after;
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  int64_t axis = g.node.attributes.get<int64_t>("axis"), before = g.node.attributes.get<int64_t>("before");
  int64_t extent = g.builder.shapeOf(g.operands[0]).extent(static_cast<size_t>(axis));
  return {g.builder.make("narrow", {g.cotangents[0]}, {{"axis", axis}, {"start", before}, {"length", extent}})};
}

IndexMap map(const Graph& graph, const Node& node) {
  const Shape& source = graph.shapeOf(node.operands[0]);
  size_t axis = static_cast<size_t>(node.attributes.get<int64_t>("axis"));
  IndexMap map = identityMap(source.rank());
  map.source[axis].offset = -node.attributes.get<int64_t>("before");
  map.guards.push_back({map.source[axis], 0, source.extent(axis)});
  map.fill = node.attributes.get<double>("value");
  return map;
}

std::vector<Tensor> evaluatePad(const EvaluateContext& c) {
  ElementReader x(*c.operands[0]);
  size_t axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  int64_t before = c.node.attributes.get<int64_t>("before"), extent = c.operands[0]->type.shape.extent(axis);
  double value = c.node.attributes.get<double>("value");
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    index[axis] -= before;
    return index[axis] >= 0 && index[axis] < extent ? x(index) : value;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, int64_t axis, int64_t before, int64_t after, double value) {
    return OpCase{
        name, {{f32(std::move(shape))}}, {{"axis", axis}, {"before", before}, {"after", after}, {"value", value}}, 0, kExactReason};
  };
  return {make("first", {4, 5, 6}, 0, 1, 2, 0), make("middle", {4, 5, 6}, 1, 0, 3, -1.5), make("last", {4, 5, 6}, 2, 2, 0, 0),
          make("nothing", {7}, 0, 0, 0, 0)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "pad",
    .summary = "The operand with elements of one value before and after it along one axis.",
    .constraints = ConstantList<Constraint>{{"C1", "the axis is within the rank"},
                                            {"C2", "before and after are at least 0"},
                                            {"C3", "the element count is at most 2^31 - 1"},
                                            {"C4", "the value is a value of the element type"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "which axis"},
                                             {"before", AttributeKind::Integer, "elements before"},
                                             {"after", AttributeKind::Integer, "elements after"},
                                             {"value", AttributeKind::Float, "their value"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ViewLowering{.map = map},
    .alias = AliasView{},
    .evaluate = evaluatePad,
    .cases = cases,
};

}  // namespace lockstep::graph::pad_op
