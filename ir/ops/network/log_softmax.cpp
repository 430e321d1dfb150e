// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/ops/support/common.h"
#include "ir/ops/support/row_ops.h"

namespace lockstep::graph::log_softmax_op {
namespace {

std::vector<ValueId> gradient(const GradientContext& g) {
  Builder& b = g.builder;
  ValueId dy = g.cotangents[0];
  ValueId probabilities = b.make("exp", {g.results[0]});
  return {b.sub(dy, b.mul(probabilities, b.sum(dy, -1, true)))};
}

// x - m - log(sum(exp(x - m))), m the row's maximum: no overflow for any finite row.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  ValueId x = operands[0];
  ValueId maximum = rowMaximum(b, x);
  ValueId shifted = b.sub(x, maximum);
  return {b.sub(shifted, b.make("log", {b.sum(b.make("exp", {shifted}), -1, true)}))};
}

void evaluateRow(std::span<double> row, size_t) {
  double maximum = *std::ranges::max_element(row), sum = 0;
  for (double x : row) sum += std::exp(x - maximum);
  for (double& x : row) x = x - maximum - std::log(sum);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "log_softmax",
    .summary = "Logarithm of the softmax over the last axis.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "the operand has an axis"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = [](const InferContext& c) { return inferRows("log_softmax", c); },
    .gradient = GradientFn(gradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateRows(c, evaluateRow); },
    .cases =
        [] {
          auto make = [](std::string_view name, Shape shape) {
            return OpCase{name, {{f32(std::move(shape)), -6, 6}}, {}, 2e-6, "exp and log within WGSL's bounds"};
          };
          return std::vector{make("rows", {6, 13, 70}), make("one_row", {11}), make("one_column", {5, 1}), make("long", {3, 1500})};
        },
};

}  // namespace lockstep::graph::log_softmax_op
