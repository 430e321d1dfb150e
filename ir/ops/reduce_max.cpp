// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <limits>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (x.dtype == DType::Bool) return violated("reduce_max", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  return inferReduced("reduce_max", "C2", c);
}

// The first element (in row-major order of the reduced axes) that equals the maximum gets all.
std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId x = g.operands[0];
  Shape shape = b.shapeOf(x);
  const auto& axes = g.node.attributes.get<std::vector<int64_t>>("axes");
  Shape kept = keptShape(shape, axes);
  std::vector<int64_t> reduced(shape.rank(), 1);
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = shape.extent(static_cast<size_t>(axis));
  int64_t count = Shape(reduced).elementCount();
  ValueId numbers = b.reshape(b.make("arange", {}, {{"n", count}, {"dtype", DType::I32}}), Shape(reduced));
  ValueId position = b.broadcastTo(numbers, shape), beyond = b.constant(static_cast<double>(count), i32(shape));
  ValueId maximum = b.broadcastTo(b.reshape(g.results[0], kept), shape);
  ValueId candidate = b.make("where", {b.make("less", {x, maximum}), beyond, position});
  ValueId first = b.neg(b.make("reduce_max", {b.neg(candidate)}, {{"axes", axes}, {"keep_dims", true}}));
  ValueId dy = b.broadcastTo(b.reshape(g.cotangents[0], kept), shape);
  ValueId later = b.make("greater", {candidate, b.broadcastTo(first, shape)});
  return {b.make("where", {later, b.constant(0, shape), dy})};
}

kernel::ValueId identity(kernel::Builder& b, const TensorType& type) {
  static constexpr std::array kLowest{-std::numeric_limits<double>::infinity(), -0x1p31, 0.0, 0.0};
  return kernelConstant(b, type.dtype, kLowest[static_cast<size_t>(type.dtype)]);
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, TensorType type, std::vector<int64_t> axes, bool keep, double lo = -2) {
    return OpCase{name, {{std::move(type), lo, 2}}, {{"axes", std::move(axes)}, {"keep_dims", keep}}, 0, kExactReason};
  };
  return {make("first", f32({6, 5, 37}), {0}, false), make("middle", f32({6, 5, 37}), {1}, true),
          make("last", f32({6, 5, 37}), {2}, true),   make("two", f32({6, 5, 37}), {0, 2}, false),
          make("all", f32({9, 131}), {0, 1}, false),  make("long_row", f32({3, 5003}), {1}, false),
          make("integer", i32({7, 33}), {1}, false),  make("unsigned", u32({7, 33}), {0}, true, 0)};
}

}  // namespace

extern const OpDef kReduceMaxOp;
const OpDef kReduceMaxOp{
    .name = "reduce_max",
    .summary = "Largest element over some axes; where several are equal the gradient goes to the first.",
    .constraints = std::vector<Constraint>{{"C1", "the operand has numbers"}, {"C2", "axes are ascending, unique and within the rank"}},
    .operands = std::vector<std::string_view>{"x"},
    .attributes = std::vector<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are reduced"},
                                            {"keep_dims", AttributeKind::Boolean, "keep the reduced axes with extent 1"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ReduceLowering{
        .axes = [](const Graph&, const Node& node) { return node.attributes.get<std::vector<int64_t>>("axes"); },
        .keep_dims = [](const Node& node) { return node.attributes.get<bool>("keep_dims"); },
        .identity = identity,
        .combine = [](kernel::Builder& b, kernel::ValueId acc, kernel::ValueId x) { return b.make(kernel::Op::Max, {acc, x}); }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateReduced(c, [](double accumulated, double x) { return x > accumulated ? x : accumulated; });
        },
    .cases = cases,
};

}  // namespace lockstep::graph
