// SPDX-License-Identifier: Apache-2.0
// What ops over the rows of a tensor share. A row is everything along the last axis; the front end permutes for other axes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// C1: the operand is f32; C2: it has an axis. Result: the operand's type.
Result<std::vector<TensorType>> inferRows(std::string_view op, const InferContext& context);

/// The result is the operand with `function` applied to each row; `number` counts the rows from 0.
std::vector<Tensor> evaluateRows(const EvaluateContext& context, void (*function)(std::span<double> row, size_t number));

/// Of an op whose result is the softmax y of its operand, or 0: (dy - sum(dy y)) y.
std::vector<ValueId> softmaxGradient(const GradientContext& context);
/// The largest number of each row, with the row's axis kept: what softmax subtracts. A NaN in the row does not reach it.
ValueId rowMaximum(Builder& builder, ValueId x);
/// Positive elements divided by the sum of their row, which is at least the smallest normal float: one division per row.
ValueId normalised(Builder& builder, ValueId elements);
/// For the evaluators: the row's elements become their softmax.
void softmaxRow(std::span<double> row);
OpCase softmaxCase(std::string_view name, Shape shape);

}  // namespace lockstep::graph
