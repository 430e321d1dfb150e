// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"
#include "ir/ops/support/index_operands.h"

namespace lockstep::graph::scatter_add_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &idx = c.operands[1], &source = c.operands[2];
  int64_t axis = c.attributes.get<int64_t>("axis");
  if (!isNumber(x.dtype) || x.dtype != source.dtype)
    return violated("scatter_add", "C1",
                    fmt::format("x is {} and the source {}, wanted numbers of one type", toString(x), toString(source)));
  if (idx.dtype != DType::I32) return violated("scatter_add", "C2", fmt::format("the index is {}, wanted i32", toString(idx)));
  if (idx.shape != source.shape)
    return violated("scatter_add", "C3", fmt::format("the index {} and the source {} differ", toString(idx.shape), toString(source.shape)));
  LS_CHECK(checkAxis("scatter_add", "C4", axis, x.shape.rank()));
  LS_CHECK(checkAlike("scatter_add", "C5", x.shape, idx.shape, axis));
  return std::vector{x};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  ValueId taken = g.builder.make("take_along_axis", {g.cotangents[0], g.operands[1]}, {{"axis", g.node.attributes.get<int64_t>("axis")}});
  return {g.cotangents[0], ValueId(), taken};
}

// Each result sums the sources that name it: a masked sum over a new axis of sources. In ascending order, so always the same bits.
std::vector<ValueId> decompose(Builder& b, const Node& node, std::span<const ValueId> operands) {
  ValueId x = operands[0], idx = operands[1], source = operands[2];
  int64_t axis = node.attributes.get<int64_t>("axis");
  auto at = static_cast<size_t>(axis);
  std::vector<int64_t> targets = b.shapeOf(x).extents(), pairs = targets, one_target = b.shapeOf(idx).extents();
  one_target.insert(one_target.begin() + axis, 1);
  pairs.insert(pairs.begin() + axis + 1, one_target[at + 1]);
  std::vector<int64_t> counted(pairs.size(), 1);
  counted[at] = targets[at];
  ValueId numbers = b.reshape(b.make("arange", {}, {{"n", targets[at]}, {"dtype", DType::I32}}), Shape(counted));
  ValueId wanted = b.broadcastTo(b.reshape(idx, Shape(one_target)), Shape(pairs));
  ValueId target = b.broadcastTo(numbers, Shape(pairs));
  ValueId value = b.broadcastTo(b.reshape(source, Shape(one_target)), Shape(pairs));
  ValueId zero = b.constant(0, TensorType{b.typeOf(x).dtype, Shape(pairs)});
  ValueId named = b.make("equal", {wanted, target});
  ValueId masked = b.make("where", {named, value, zero});
  bool one_source = one_target[at + 1] == 1;
  ValueId added = one_source ? b.reshape(masked, Shape(targets)) : b.sum(masked, axis + 1, false);
  return {b.add(x, added)};
}

std::vector<Tensor> evaluateScatterAdd(const EvaluateContext& c) {
  const Tensor &x = *c.operands[0], &source = *c.operands[2];
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  Tensor out{c.results[0], x.data};
  ElementReader idx(*c.operands[1]);
  std::vector<int64_t> extents = source.type.shape.extents(), index(extents.size(), 0), strides = x.type.shape.strides();
  size_t next = 0;
  do {
    double value = source.data[next++], wanted = idx(index);
    if (wanted < 0 || wanted >= static_cast<double>(x.type.shape.extent(axis))) continue;
    int64_t flat = 0;
    for (size_t i = 0; i < strides.size(); ++i) flat += strides[i] * (i == axis ? static_cast<int64_t>(wanted) : index[i]);
    out.data[static_cast<size_t>(flat)] += value;
  } while (nextIndex(index, extents));
  for (double& value : out.data) value = wrapped(value, x.type.dtype);
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, DType dtype, Shape x, Shape idx, int64_t axis, double lo, double hi) {
    return OpCase{name, {{{dtype, std::move(x)}}, {i32(idx), lo, hi}, {{dtype, idx}}}, {{"axis", axis}}, 2e-6, "sums of a few numbers"};
  };
  return {make("middle", DType::F32, {4, 5, 3}, {4, 9, 3}, 1, 0, 4), make("last", DType::F32, {3, 7}, {3, 40}, 1, 0, 6),
          make("first", DType::F32, {6, 11}, {3, 11}, 0, 0, 5),      make("outside", DType::F32, {4, 5}, {4, 8}, 1, -3, 7),
          make("one_each", DType::F32, {33, 6}, {33, 1}, 1, 0, 5),   make("integer", DType::I32, {5}, {40}, 0, 0, 4)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "scatter_add",
    .summary = "x with each element of the source added at the position along an axis that its index names; an index outside adds nothing.",
    .constraints = ConstantList<Constraint>{{"C1", "x and the source have numbers of one element type"},
                                            {"C2", "the index is i32"},
                                            {"C3", "the index and the source have one shape"},
                                            {"C4", "the axis is within the rank of x"},
                                            {"C5", "the index has the extents of x along all other axes"}},
    .operands = ConstantList<std::string_view>{"x", "idx", "source"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis that the index counts along"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = evaluateScatterAdd,
    .cases = cases,
    .index = indexAlongAxis,
};

}  // namespace lockstep::graph::scatter_add_op
