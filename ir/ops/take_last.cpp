// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType &x = c.operands[0], &idx = c.operands[1];
  if (x.dtype != DType::F32) return violated("take_last", "C1", fmt::format("x is {}, wanted f32", toString(x)));
  if (idx.dtype != DType::I32) return violated("take_last", "C2", fmt::format("the index is {}, wanted i32", toString(idx)));
  std::vector<Dim> dims = x.shape.dims();
  bool matches = !dims.empty();
  if (matches) dims.pop_back();
  if (!matches || Shape(dims) != idx.shape) {
    return violated("take_last", "C3",
                    fmt::format("x is {}, and the index {} does not have its axes without the last", toString(x), toString(idx)));
  }
  return std::vector{f32(Shape(std::move(dims)))};
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  Shape shape = b.shapeOf(g.operands[0]);
  size_t last = shape.rank() - 1;
  ValueId dy = b.reshape(g.cotangents[0], keptShape(shape, {static_cast<int64_t>(last)}));
  ValueId hot = b.make("one_hot", {g.operands[1]}, {{"depth", shape.extent(last)}});
  return {b.mul(b.broadcastTo(dy, shape), hot), ValueId()};
}

// The position is clamped, so that the read is in bounds, and the value dropped where the index was outside.
kernel::ValueId emit(ElementEmitter& e) {
  kernel::Builder& b = e.builder();
  const Shape& shape = e.graph().shapeOf(e.node().operands[0]);
  auto extent = static_cast<uint32_t>(shape.extent(shape.rank() - 1));
  std::vector<kernel::ValueId> at(e.index().begin(), e.index().end());
  kernel::ValueId wanted = b.convert(b.types().u32(), e.operandAt(1, at));
  at.push_back(b.make(kernel::Op::Min, {wanted, b.u32(extent - 1)}));
  kernel::ValueId value = e.operandAt(0, std::move(at));
  return b.make(kernel::Op::Select, {b.f32(0), value, b.make(kernel::Op::Lt, {wanted, b.u32(extent)})});
}

std::vector<Tensor> evaluateTakeLast(const EvaluateContext& c) {
  const Tensor &x = *c.operands[0], &idx = *c.operands[1];
  int64_t extent = x.type.shape.extent(x.type.shape.rank() - 1);
  Tensor out{c.results[0], {}};
  for (size_t row = 0; row < idx.data.size(); ++row) {
    int64_t at = static_cast<int64_t>(idx.data[row]);
    bool inside = at >= 0 && at < extent;
    out.data.push_back(inside ? x.data[row * static_cast<size_t>(extent) + static_cast<size_t>(at)] : 0.0);
  }
  return {std::move(out)};
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape x, Shape idx, double lo, double hi) {
    return OpCase{name, {{f32(std::move(x)), -2, 2}, {i32(std::move(idx)), lo, hi}}, {}, 0, kExactReason};
  };
  return {make("rows", {4, 6, 27}, {4, 6}, 0, 26), make("outside", {41, 5}, {41}, -2, 7), make("vector", {9}, {}, 4, 4)};
}

}  // namespace

extern const OpDef kTakeLastOp;
const OpDef kTakeLastOp{
    .name = "take_last",
    .summary = "The element that the index names along the last axis, which is dropped; an index outside gives 0.",
    .constraints =
        std::vector<Constraint>{
            {"C1", "x is f32"}, {"C2", "the index is i32"}, {"C3", "the index has the shape of x without its last axis"}},
    .operands = std::vector<std::string_view>{"x", "idx"},
    .attributes = std::vector<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ElementLowering{.emit = emit, .scalar_only = true},
    .alias = NoAlias{},
    .evaluate = evaluateTakeLast,
    .cases = cases,
};

}  // namespace lockstep::graph
