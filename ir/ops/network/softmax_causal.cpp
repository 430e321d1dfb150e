// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/ops/support/row_ops.h"

namespace lockstep::graph::softmax_causal_op {
namespace {

Result<std::vector<TensorType>> infer(const InferContext& c) {
  const TensorType& x = c.operands[0];
  size_t rank = x.shape.rank();
  if (x.dtype != DType::F32) return violated("softmax_causal", "C1", fmt::format("operand is {}, wanted f32", toString(x)));
  if (rank < 2 || x.shape[rank - 2] != x.shape[rank - 1])
    return violated("softmax_causal", "C2", fmt::format("the last two extents of {} are not equal", toString(x.shape)));
  return std::vector{x};
}

// Masked elements are the lowest finite number for the maximum (infinities could give NaN) and exactly 0 after exp.
std::vector<ValueId> decompose(Builder& b, const Node&, std::span<const ValueId> operands) {
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  ValueId x = b.make("where_causal", {operands[0]}, {{"fill", kLowest}});
  ValueId maximum = rowMaximum(b, x);
  ValueId power = b.make("where_causal", {b.make("exp", {b.sub(x, maximum)})}, {{"fill", 0.0}});
  return {normalised(b, power)};
}

// Row i of a matrix sees its first i + 1 elements.
void evaluateRow(std::span<double> row, size_t number) {
  size_t seen = number % row.size() + 1;
  softmaxRow(row.first(seen));
  std::ranges::fill(row.subspan(seen), 0.0);
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "softmax_causal",
    .summary = "Softmax over the last axis, of the elements whose last index is at most the one before it; the others are 0.",
    .constraints = ConstantList<Constraint>{{"C1", "the operand is f32"}, {"C2", "the last two extents are equal"}},
    .operands = ConstantList<std::string_view>{"x"},
    .attributes = ConstantList<AttributeDef>{},
    .infer = infer,
    .gradient = GradientFn(softmaxGradient),
    .lower = DecomposeLowering{.decompose = decompose},
    .alias = NoAlias{},
    .evaluate = [](const EvaluateContext& c) { return evaluateRows(c, evaluateRow); },
    .cases =
        [] {
          return std::vector{softmaxCase("one", {2, 3, 1, 1}), softmaxCase("small", {2, 3, 8, 8}), softmaxCase("odd", {2, 65, 65}),
                             softmaxCase("plain", {5, 5})};
        },
};

}  // namespace lockstep::graph::softmax_causal_op
