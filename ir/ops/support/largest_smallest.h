// SPDX-License-Identifier: Apache-2.0
// What the ops share that look for a largest or smallest element: reduce_max, reduce_min, argmax, argmin.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// Of reduce_max and reduce_min. C1: the operand has numbers; C2: the axes, as inferReduced says.
Result<std::vector<TensorType>> inferExtremum(std::string_view op, const InferContext& context);
/// `op`, Max or Min, of two numbers of one kernel type; NaN where one of them is.
kernel::ValueId emitExtremum(kernel::Builder& builder, kernel::Op op, kernel::ValueId a, kernel::ValueId b);
/// Where `x` is its `extremum`, a tensor of the same shape; a NaN is one where the extremum is.
ValueId isExtremum(Builder& builder, ValueId x, ValueId extremum);
/// Of max and min: the gradient goes to the operand that the comparison of a and b chooses. Where a NaN is it chooses neither, and both get
/// it.
std::vector<ValueId> choiceGradient(const GradientContext& context, std::string_view chooses_a, std::string_view chooses_b);
/// The first element (in row-major order of the reduced axes) that equals the result gets all.
std::vector<ValueId> extremumGradient(const GradientContext& context);
std::vector<OpCase> extremumCases();

/// Of argmax and argmin. C1: the operand has numbers; C2: the axis is within the rank. Result: i32 without the axis.
Result<std::vector<TensorType>> inferArgument(std::string_view op, const InferContext& context);
/// The lowest position along the attribute `axis` where `reduction` of it (reduce_max, reduce_min) stands.
std::vector<ValueId> decomposeArgument(Builder& builder, const Node& node, ValueId x, std::string_view reduction);
/// Strictly better elements win, so that the first of equal ones stays; the first NaN wins over all.
std::vector<Tensor> evaluateArgument(const EvaluateContext& context, bool (*better)(double candidate, double best));
std::vector<OpCase> argumentCases();
/// OpDef::open of argmax (is_max) and argmin: what does not count is the worst there is, after the elements that count.
std::optional<std::vector<Opened>> openArgument(const OpenContext& context, bool is_max);

/// i32 numbers 0, 1, ... along an axis of a shape.
ValueId placesAlong(Builder& builder, const Shape& shape, int64_t axis);
/// Of two tuples (key, place) the better one, by `better` ("greater" or "less") of their keys, and of equal ones that of the lowest place.
Graph bestCombine(DType key, std::string_view better);
struct Best {
  ValueId key, place;
};
/// The best along an axis, which stays with extent 1: the elements are read once.
Best bestAlong(Builder& builder, Best elements, int64_t axis, std::string_view better);

}  // namespace lockstep::graph
