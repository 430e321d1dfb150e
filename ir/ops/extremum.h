// SPDX-License-Identifier: Apache-2.0
// What the ops share that look for a largest or smallest element: reduce_max, reduce_min, argmax, argmin.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// Of reduce_max and reduce_min. C1: the operand has numbers; C2: the axes, as inferReduced says.
Result<std::vector<TensorType>> inferExtremum(std::string_view op, const InferContext& context);
/// The first element (in row-major order of the reduced axes) that equals the result gets all.
std::vector<ValueId> extremumGradient(const GradientContext& context);
std::vector<OpCase> extremumCases();

/// Of argmax and argmin. C1: the operand has numbers; C2: the axis is within the rank. Result: i32 without the axis.
Result<std::vector<TensorType>> inferArgument(std::string_view op, const InferContext& context);
/// The lowest position along the attribute `axis` where `reduction` of it (reduce_max, reduce_min) stands.
std::vector<ValueId> decomposeArgument(Builder& builder, const Node& node, ValueId x, std::string_view reduction);
/// Strictly better elements win, so that the first of equal ones stays.
std::vector<Tensor> evaluateArgument(const EvaluateContext& context, bool (*better)(double candidate, double best));
std::vector<OpCase> argumentCases();

}  // namespace lockstep::graph
