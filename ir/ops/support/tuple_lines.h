// SPDX-License-Identifier: Apache-2.0
// What ops share that combine tuples of elements along an axis by a function that is an attribute: associative_scan, associative_reduce.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

inline constexpr std::string_view kTupleRule = "operands have numbers and one shape, and there is one";
inline constexpr std::string_view kCombineRule = "combine is a graph of element operations on two tuples of scalars that gives one";

/// C1: kTupleRule; C2: the attribute `axis` is within the rank; C3: kCombineRule.
Status checkTuples(std::string_view op, const InferContext& context);
/// The attribute `combine`.
Graph combineOf(const Node& node);
/// `count` elements of an axis from `start` on.
ValueId narrowed(Builder& builder, ValueId x, int64_t axis, int64_t start, int64_t count);

enum class Prefixes : uint8_t { All, Last };
/// Of the elements along the attribute `axis`: one after the other, all lines at a time. `is_reversed`: from the end.
std::vector<Tensor> evaluateTuples(const EvaluateContext& context, Prefixes kept, bool is_reversed);

/// Functions to try it with. (m, s): s is relative to exp(m), so that m + log(s) is the logarithm of a sum of exponentials.
Graph logSumCombine();
/// (a, b): the line x -> a x + b; they do not commute.
Graph affineCombine();
/// (n, mean, m2): the number of elements, their mean and the sum of their squared distances from it (Chan, Golub and LeVeque 1979).
Graph momentsCombine();

}  // namespace lockstep::graph
