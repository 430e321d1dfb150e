// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::sum_to_shape_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  const auto& extents = c.attributes.get<std::vector<int64_t>>("shape");
  if (!isNumber(x.dtype)) return violated("sum_to_shape", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  LS_CHECK(checkExtents("sum_to_shape", "C2", extents));
  Shape shape(extents);
  if (broadcastShapes(shape, x.shape) != x.shape)
    return violated("sum_to_shape", "C2", fmt::format("{} does not broadcast to {}", toString(shape), toString(x.shape)));
  return std::vector{TensorType{x.dtype, shape}};
}

std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  ValueId x = operands[0];
  Shape from = b.shapeOf(x), to(node.attributes.get<std::vector<int64_t>>("shape"));
  size_t added = from.rank() - to.rank();
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < from.rank(); ++axis) {
    bool repeated = axis < added || to.extent(axis - added) == 1;
    if (repeated && from.extent(axis) != 1) axes.push_back(static_cast<int64_t>(axis));
  }
  if (!axes.empty()) x = b.make("sum", {x}, {{"axes", std::move(axes)}, {"keep_dims", false}});
  return {b.reshape(x, to)};
}

ValueId lift(const LiftContext& c) {
  Builder& b = c.builder;
  const std::vector<int64_t> to = c.node.attributes.get<std::vector<int64_t>>("shape");
  const size_t added = b.shapeOf(c.operands[0]).rank() - 1 - to.size();
  std::vector<int64_t> aligned{c.rows}, rows{c.rows};
  aligned.insert(aligned.end(), added, 1);
  aligned.insert(aligned.end(), to.begin(), to.end());
  rows.insert(rows.end(), to.begin(), to.end());
  return b.reshape(b.make("sum_to_shape", {c.operands[0]}, {{"shape", aligned}}), Shape(rows));
}

std::vector<Tensor> evaluateSumToShape(const EvaluateContext& c) {
  const Tensor& x = *c.operands[0];
  Tensor out{c.results[0], std::vector<double>(static_cast<size_t>(c.results[0].shape.elementCount()), 0.0)};
  std::vector<int64_t> extents = x.type.shape.extents(), strides = out.type.shape.strides(), index(extents.size(), 0);
  size_t added = extents.size() - strides.size(), flat = 0;
  do {
    int64_t target = 0;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      if (out.type.shape.extent(axis) != 1) target += index[axis + added] * strides[axis];
    }
    out.data[static_cast<size_t>(target)] += x.data[flat++];
  } while (nextIndex(index, extents));
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape from, std::vector<int64_t> to) {
    return OpCase{name, {{f32(std::move(from))}}, {{"shape", std::move(to)}}, 1e-6, "blocked sums of at most 5000 elements"};
  };
  return {make("middle", {4, 3, 5}, {3, 1}), make("bias", {7, 33, 65}, {65}), make("scalar", {67, 74}, {}),
          make("same", {3, 5}, {3, 5}),      make("ones", {1, 1, 6}, {1, 6}), make("column", {4, 5, 9}, {4, 1, 1})};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sum_to_shape",
    .summary = "Sum over the axes along which broadcasting the new shape would repeat it.",
    .constraints =
        ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "the new shape broadcasts to the shape of the operand"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"shape", AttributeKind::Integers, "the new shape"}},
    .infer = infer,
    .gradient = GradientFn([](const GradientContext& g) {
      return std::vector{g.builder.broadcastTo(g.cotangents[0], Shape(g.builder.shapeOf(g.operands[0])))};
    }),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateSumToShape,
    .cases = cases,
    .lift = lift,
};

}  // namespace lockstep::graph::sum_to_shape_op
