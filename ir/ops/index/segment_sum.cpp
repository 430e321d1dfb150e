// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::segment_sum_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &source = c.operands[0], &idx = c.operands[1];
  int64_t axis = c.attributes.get<int64_t>("axis"), segments = c.attributes.get<int64_t>("segments");
  if (!isNumber(source.dtype)) return violated("segment_sum", "C1", fmt::format("the source is {}, wanted numbers", toString(source)));
  if (idx.dtype != DType::I32 || idx.shape.rank() != 1)
    return violated("segment_sum", "C2", fmt::format("the index is {}, wanted i32 with one axis", toString(idx)));
  LS_CHECK(checkAxis("segment_sum", "C3", axis, source.shape.rank()));
  if (source.shape[static_cast<size_t>(axis)] != idx.shape[0]) {
    return violated("segment_sum", "C4",
                    fmt::format("axis {} of {} and the {} indices differ", axis, toString(source.shape), idx.shape.extent(0)));
  }
  std::vector<int64_t> extents = source.shape.extents();
  extents[static_cast<size_t>(axis)] = segments;
  LS_CHECK(checkExtents("segment_sum", "C5", extents));
  return std::vector{TensorType{source.dtype, Shape(extents)}};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  return {g.builder.make("index_select", {g.cotangents[0], g.operands[1]}, {{"axis", g.node.attributes.get<int64_t>("axis")}}), ValueId()};
}

ScatterShape scatterShape(const Graph& graph, const Node& node) {
  const Shape &source = graph.shapeOf(node.operands[0]), &result = graph.shapeOf(node.results[0]);
  auto axis = static_cast<size_t>(node.attributes.get<int64_t>("axis"));
  ScatterShape shape{.outer = 1, .segments = result.extent(axis), .length = source.extent(axis), .inner = source.strides()[axis]};
  shape.outer = source.elementCount() / (shape.length * shape.inner);
  return shape;
}

std::vector<Tensor> evaluateSegmentSum(const EvaluateContext& c) {
  const Tensor &source = *c.operands[0], &idx = *c.operands[1];
  auto axis = static_cast<size_t>(c.node.attributes.get<int64_t>("axis"));
  ElementReader element(source);
  std::vector<Tensor> out = evaluateByIndex(c, [&](std::vector<int64_t> index) {
    auto segment = static_cast<double>(index[axis]);
    double sum = 0;
    for (size_t n = 0; n < idx.data.size(); ++n) {
      if (idx.data[n] != segment) continue;
      index[axis] = static_cast<int64_t>(n);
      sum += element(index);
    }
    return sum;
  });
  for (double& value : out[0].data) value = wrapped(value, source.type.dtype);
  return out;
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType source, int64_t length, int64_t axis, int64_t segments, double lo, double hi) {
    return OpCase{
        name, {{std::move(source)}, {i32({length}), lo, hi}}, {{"axis", axis}, {"segments", segments}}, 2e-6, "sums of a few numbers"};
  };
  return {make("rows", f32({36, 6}), 36, 0, 11, 0, 10),        make("wide", f32({70, 130}), 70, 0, 5, 0, 4),
          make("vector", f32({700}), 700, 0, 9, 0, 8),         make("outside", f32({41, 3}), 41, 0, 4, -3, 6),
          make("middle", f32({3, 17, 5}), 17, 1, 4, 0, 3),     make("last", f32({5, 19}), 19, 1, 7, 0, 6),
          make("many_rows", f32({1100, 4}), 1100, 0, 3, 0, 2), make("integer", i32({30, 2}), 30, 0, 5, 0, 4),
          make("pairs", f32({120}), 120, 0, 12, 0, 11)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "segment_sum",
    .summary = "Sum of the slices along an axis whose index names each segment; slices whose index is outside are left out.",
    .constraints = ConstantList<Constraint>{{"C1", "the source has numbers"},
                                            {"C2", "the index is i32 with one axis"},
                                            {"C3", "the axis is within the rank of the source"},
                                            {"C4", "there is an index for each slice of the source along the axis"},
                                            {"C5", "every extent is at least 1 and the element count is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"source", "idx"},
    .attributes = ConstantList<AttributeDef>{{"axis", AttributeKind::Integer, "the axis of the slices"},
                                             {"segments", AttributeKind::Integer, "extent of that axis in the result"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ScatterLowering{
        .shape = scatterShape,
        .identity = [](kernel::Builder& b, const TensorType& type) { return kernelConstant(b, type.dtype, 0); },
        .combine = [](kernel::Builder& b, kernel::ValueId sum, kernel::ValueId x) { return b.make(kernel::Op::Add, {sum, x}); }},
    .alias = NoAlias{},
    .evaluate = evaluateSegmentSum,
    .cases = cases,
    .index = [](const Graph&, const Node& node) -> IndexUse {
      return {.operand = 1, .extent = node.attributes.get<int64_t>("segments"), .places = "segments"};
    },
};

}  // namespace lockstep::graph::segment_sum_op
