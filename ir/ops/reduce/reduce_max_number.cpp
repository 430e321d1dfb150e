// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"
#include "ir/ops/support/largest_smallest.h"

namespace lockstep::graph::reduce_max_number_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& context) {
  const TensorType& x = context.operands[0];
  if (x.dtype != DType::F32) return violated("reduce_max_number", "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  return inferReduced("reduce_max_number", "C2", context);
}

std::vector<OpCase> cases() {
  auto make = [](std::string_view name, Shape shape, std::vector<int64_t> axes) {
    return OpCase{name, {{f32(std::move(shape)), -2, 2}}, {{"axes", std::move(axes)}, {"keep_dims", true}}, 0, kExactReason};
  };
  return {make("first", {6, 5, 37}, {0}), make("last", {6, 5, 37}, {2}), make("all", {9, 131}, {0, 1}), make("long_row", {3, 5003}, {1})};
}

}  // namespace

// maximumNumber of IEEE 754-2019. reduce_max tests each element for NaN, which takes about 5 % of the time of short rows of softmax;
// softmax needs no such test, since the exponential of a NaN is one whatever is subtracted from it.
extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "reduce_max_number",
    .summary = "Largest element over some axes but for those that are NaN; where all are, NaN or negative infinity.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "axes are ascending, unique and within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are reduced"},
                                             {"keep_dims", AttributeKind::Boolean, "keep the reduced axes with extent 1"}},
    .infer = infer,
    .gradient = GradientFn(extremumGradient),
    .lower = ReduceLowering{
        .axes = [](const Graph&, const Node& node) { return node.attributes.get<std::vector<int64_t>>("axes"); },
        .keep_dims = [](const Node& node) { return node.attributes.get<bool>("keep_dims"); },
        .neutral = [](DType) { return -std::numeric_limits<double>::infinity(); },
        .combine = [](kernel::Builder& b, kernel::ValueId acc, kernel::ValueId x) { return b.make(kernel::Op::Max, {acc, x}); }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) { return evaluateReduced(c, [](double accumulated, double x) { return std::fmax(accumulated, x); }); },
    .cases = cases,
};

}  // namespace lockstep::graph::reduce_max_number_op
