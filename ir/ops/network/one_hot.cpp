// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::one_hot_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& idx = c.operands[0];
  if (idx.dtype != DType::I32) return violated("one_hot", "C1", fmt::format("operand is {}, wanted i32", toString(idx)));
  int64_t depth = c.attributes.get<int64_t>("depth");
  if (depth < 1 || depth > INT32_MAX) return violated("one_hot", "C2", fmt::format("depth {} is outside 1 to 2^31 - 1", depth));
  std::vector<int64_t> extents = idx.shape.extents();
  extents.push_back(depth);
  LS_CHECK(checkExtents("one_hot", "C3", extents));
  std::vector<Dim> dims = idx.shape.dims();
  dims.emplace_back(depth);
  return std::vector{f32(Shape(std::move(dims)))};
}

// A negative index is a large u32, so it matches no position.
kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  std::span<const kernel::ValueId> index = e.index();
  kernel::ValueId column = index.back();
  kernel::ValueId wanted = b.convert(b.types().u32(), e.operandAt(0, {index.begin(), index.end() - 1}));
  return b.make(kernel::Op::Select, {b.f32(0), b.f32(1), b.make(kernel::Op::Eq, {wanted, column})});
}

std::vector<Tensor> evaluateOneHot(const EvaluateContext& c) {
  ElementReader idx(*c.operands[0]);
  return evaluateByIndex(c, [&](std::vector<int64_t> index) {
    int64_t column = index.back();
    index.pop_back();
    return idx(index) == static_cast<double>(column) ? 1.0 : 0.0;
  });
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, int64_t depth, double lo, double hi) {
    return OpCase{name, {{i32(std::move(shape)), lo, hi}}, {{"depth", depth}}, 0, "results are 0 or 1"};
  };
  return {make("rows", {3, 5}, 9, 0, 8), make("outside", {41}, 4, -3, 6), make("scalar", {}, 5, 2, 2), make("one", {7}, 1, 0, 1)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "one_hot",
    .summary = "1 at the position that the index names along a new last axis, else 0; an index outside gives a row of 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is i32"},
                                            {"C2", "depth is at least 1 and below 2^31"},
                                            {"C3", "every extent is at least 1 and the element count is at most 2^31 - 1"}},
    .operands = ConstantList<std::string_view>{"idx"},
    .attributes = ConstantList<AttributeDef>{{"depth", AttributeKind::Integer, "extent of the new last axis"}},
    .infer = infer,
    .gradient = NotDifferentiable{"the operand is an index"},
    .lower = ElementLowering{.emit = emit, .scalar_only = true, .cheap = true},
    .alias = NoAlias{},
    .evaluate = evaluateOneHot,
    .cases = cases,
    .index = [](const Graph&, const Node& node) -> IndexUse {
      return {.extent = node.attributes.get<int64_t>("depth"), .places = "places"};
    },
    .open = [](const OpenContext& c) -> std::optional<std::vector<Opened>> {
      OpenAxes axes = c.operands[0].axes;
      axes.push_back(0);
      return c.made({c.operands[0].value}, axes);
    },
};

}  // namespace lockstep::graph::one_hot_op
