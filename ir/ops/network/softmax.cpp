// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/row_ops.h"

namespace lockstep::graph::softmax_op {
namespace {

// exp(x - m) / sum(exp(x - m)), m the row's maximum: no overflow, and the sum is at least 1.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  ValueId x = operands[0];
  ValueId maximum = rowMaximum(b, x);
  ValueId power = b.make("exp", {b.sub(x, maximum)});
  return {normalised(b, power)};
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "softmax",
    .summary = "Exponentials normalised to sum 1 over the last axis.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "the operand has an axis"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferRows("softmax", c); },
    .gradient = GradientFn(softmaxGradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateRows(c, [](std::span<double> row, size_t) { softmaxRow(row); }); },
    .cases =
        [] {
          return std::vector{softmaxCase("rows", {6, 13, 70}), softmaxCase("one_row", {11}), softmaxCase("one_column", {5, 1}),
                             softmaxCase("long", {3, 1500})};
        },
};

}  // namespace lockstep::graph::softmax_op
