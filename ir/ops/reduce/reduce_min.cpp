// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>

#include "ir/ops/support/common.h"
#include "ir/ops/support/largest_smallest.h"

namespace lockstep::graph::reduce_min_op {
namespace {

double neutral(DType dtype) {
  static constexpr std::array kHighest{std::numeric_limits<double>::infinity(), 0x1p31 - 1, 0x1p32 - 1, 1.0};
  return kHighest[static_cast<size_t>(dtype)];
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "reduce_min",
    .summary = "Smallest element over some axes, NaN where one of them is; where several are equal the gradient goes to the first.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand has numbers"}, {"C2", "axes are ascending, unique and within the rank"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{{"axes", AttributeKind::Integers, "the axes that are reduced"},
                                             {"keep_dims", AttributeKind::Boolean, "keep the reduced axes with extent 1"}},
    .infer = [](const InferContext& c) { return inferExtremum("reduce_min", c); },
    .gradient = GradientFn(extremumGradient),
    .lower = ReduceLowering{.axes = [](const Graph&, const Node& node) { return node.attributes.get<std::vector<int64_t>>("axes"); },
                            .keep_dims = [](const Node& node) { return node.attributes.get<bool>("keep_dims"); },
                            .neutral = neutral,
                            .combine = [](kernel::Builder& b, kernel::ValueId acc,
                                          kernel::ValueId x) { return emitExtremum(b, kernel::Op::Min, acc, x); }},
    .alias = NoAlias{},
    .evaluate =
        [](const EvaluateContext& c) {
          return evaluateReduced(c, [](double accumulated, double x) { return x < accumulated || std::isnan(x) ? x : accumulated; });
        },
    .cases = extremumCases,
};

}  // namespace lockstep::graph::reduce_min_op
