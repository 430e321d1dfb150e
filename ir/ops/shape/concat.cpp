// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::concat_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  if (c.operands.empty()) return violated("concat", "C1", "there is no operand");
  const TensorType& first = c.operands.front();
  int64_t axis = c.attributes.get<int64_t>("axis");
  LS_CHECK(checkAxis("concat", "C2", axis, first.shape.rank()));
  auto along = static_cast<size_t>(axis);
  std::vector<Dim> dims = first.shape.dims();
  int64_t total = 0;
  for (const TensorType& type : c.operands) {
    if (type.dtype != first.dtype) return violated("concat", "C3", fmt::format("operands are {} and {}", toString(first), toString(type)));
    bool equal = type.shape.rank() == dims.size();
    for (size_t i = 0; equal && i < dims.size(); ++i) equal = i == along || type.shape[i] == dims[i];
    if (!equal)
      return violated("concat", "C4",
                      fmt::format("{} and {} differ in other axes than axis {}", toString(first.shape), toString(type.shape), axis));
    total += type.shape.extent(along);
  }
  std::vector<int64_t> extents = first.shape.extents();
  extents[along] = total;
  LS_CHECK(checkExtents("concat", "C5", extents));
  if (c.operands.size() > 1) dims[along] = total;
  return std::vector{TensorType{first.dtype, Shape(std::move(dims))}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  int64_t axis = g.node.attributes.get<int64_t>("axis"), start = 0;
  std::vector<ValueId> gradients;
  for (ValueId operand : g.operands) {
    int64_t length = g.builder.shapeOf(operand).extent(static_cast<size_t>(axis));
    gradients.push_back(g.builder.make("narrow", {g.cotangents[0]}, {{"axis", axis}, {"start", start}, {"length", length}}));
    start += length;
  }
  return gradients;
}

// Each operand padded to its place; from the start of an operand on, it hides those before.
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  int64_t axis = node.attributes.get<int64_t>("axis"), start = 0;
  if (operands.size() == 1) return {operands[0]};
  auto along = static_cast<size_t>(axis);
  int64_t total = 0;
  for (ValueId operand : operands) total += b.shapeOf(operand).extent(along);
  std::vector<int64_t> extents = b.shapeOf(operands[0]).extents(), line(extents.size(), 1);
  extents[along] = line[along] = total;
  Shape shape(extents);
  ValueId numbers = b.make("arange", {}, {{"n", total}, {"dtype", DType::I32}});
  ValueId position = b.broadcastTo(b.reshape(numbers, Shape(line)), shape);
  ValueId joined;
  for (ValueId operand : operands) {
    int64_t length = b.shapeOf(operand).extent(along);
    ValueId placed = b.make("pad", {operand}, {{"axis", axis}, {"before", start}, {"after", total - start - length}, {"value", 0.0}});
    if (joined.valid()) {
      ValueId before = b.make("less", {position, b.constant(static_cast<double>(start), i32(shape))});
      placed = b.make("where", {before, joined, placed});
    }
    joined = placed;
    start += length;
  }
  return {joined};
}

std::vector<Tensor> evaluateConcat(const EvaluateContext& c) {
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  std::vector<ElementReader> readers;
  for (const Tensor* operand : c.operands) readers.emplace_back(*operand);
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    size_t which = 0;
    for (; index[axis] >= c.operands[which]->type.shape.extent(axis); ++which) index[axis] -= c.operands[which]->type.shape.extent(axis);
    return readers[which](index);
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, std::vector<Shape> shapes, int64_t axis) {
    OpCase made{name, {}, {{"axis", axis}}, 0, kExactReason};
    for (Shape& shape : shapes) made.operands.push_back({f32(std::move(shape))});
    return made;
  };
  return {make("first", {{2, 5}, {1, 5}, {4, 5}}, 0), make("middle", {{2, 3, 4}, {2, 2, 4}}, 1), make("last", {{7, 3}, {7, 1}}, 1),
          make("one", {{3, 2}}, 0), make("many", std::vector<Shape>(11, Shape{2, 3}), 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "concat",
    .summary = "The operands one after the other along one axis.",
    .constraints = ConstantList<Constraint>{{"C1", "there is at least one operand"},
                                            {"C2", "the axis is within the rank"},
                                            {"C3", "operands have one element type"},
                                            {"C4", "operands have one shape, except along the axis"},
                                            {"C5", "the element count of the result is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"x..."},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "which axis"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateConcat,
    .cases = cases,
};

}  // namespace lockstep::graph::concat_op
