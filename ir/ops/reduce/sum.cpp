// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/ops/support/common.h"

namespace lockstep::graph::sum_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  if (!isNumber(x.dtype)) return violated("sum", "C1", fmt::format("operand is {}, wanted numbers", toString(x)));
  return inferReduced("sum", "C2", c);
}

std::vector<ValueId> gradient(const GradientContext& g) {
  Shape shape = g.builder.shapeOf(g.operands[0]);
  Shape kept = keptShape(shape, g.node.attributes.get<std::vector<int64_t>>("axes"));
  return {g.builder.broadcastTo(g.builder.reshape(g.cotangents[0], kept), shape)};
}

ValueId lift(const LiftContext& c) {
  std::vector<int64_t> axes = c.node.attributes.get<std::vector<int64_t>>("axes");
  for (int64_t& axis : axes) ++axis;
  return c.builder.make("sum", {c.operands[0]}, {{"axes", std::move(axes)}, {"keep_dims", c.node.attributes.get<bool>("keep_dims")}});
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, std::vector<int64_t> axes, bool keep) {
    return OpCase{name,
                  {{f32(std::move(shape)), -2, 2}},
                  {{"axes", std::move(axes)}, {"keep_dims", keep}},
                  1e-6,
                  "blocked sums of at most 5000 elements"};
  };
  return {make("first", {6, 5, 37}, {0}, false),  make("middle", {6, 5, 37}, {1}, true), make("last", {6, 5, 37}, {2}, false),
          make("two", {6, 5, 37}, {0, 2}, false), make("all", {9, 131}, {0, 1}, false),  make("long_row", {3, 5003}, {1}, false)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "sum",
    .summary = "Sum over some axes.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "axes are ascending, unique and within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are summed"},
                                             {"keep_dims", AttributeKind::Boolean, "keep the reduced axes with extent 1"}},
    .infer = infer,
    .gradient = GradientFn(gradient),
    .lower = ReduceLowering{
        .axes = [](const Graph&, const Node& node) { return node.attributes.get<std::vector<int64_t>>("axes"); },
        .keep_dims = [](const Node& node) { return node.attributes.get<bool>("keep_dims"); },
        .neutral = [](DType) { return 0.0; },
        .combine = [](kernel::Builder& b, kernel::ValueId acc, kernel::ValueId x) { return b.make(kernel::Op::Add, {acc, x}); }},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateReduced(c, [](double accumulated, double x) { return accumulated + x; }); },
    .cases = cases,
    .lift = lift,
};

}  // namespace lockstep::graph::sum_op
