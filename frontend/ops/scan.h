// SPDX-License-Identifier: Apache-2.0
// Prefixes and totals along an axis: recurrences that are linear, and any function that is associative.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontend/ops/reduce.h"
#include "frontend/trace/tensor.h"

namespace lockstep {

struct ScanOptions {
  bool reverse = false;  ///< from the end
};

struct RecurrenceOptions {
  bool reverse = false;                ///< from the end
  std::optional<Tensor> initial = {};  ///< the state before the first step, of the shape of `a` without the axis; none: 0
};
/// The states of h_t = a_t h_(t-1) + b_t along an axis; without an initial state the first one is b_0. a and b are f32 of one shape, which
/// is the result's. The steps run in parallel (Blelloch 1990), forward and backward.
Tensor linear_recurrence(Tensor a, Tensor b, int64_t axis, RecurrenceOptions options = {}, Where where = Where::current());

/// A function of two tuples of scalars, the one of earlier elements and the one of later ones, that gives one; by operations on elements
/// alone. It has to be associative, f(f(x, y), z) = f(x, f(y, z)), which is not checked: the order of places is kept, that of calls is not.
using Combine = std::function<std::vector<Tensor>(const std::vector<Tensor>& earlier, const std::vector<Tensor>& later)>;
/// For each place along an axis, the elements up to it combined; of one tuple or of several tensors of one shape, with numbers. Gradients
/// flow through all operands, at the price of memory for each doubling of the distance.
/// Errors "associative_scan.C1" to "C3" for operands or a function of another kind, "associative_scan.capture" for a function that reads
/// another tensor, captures one or prints one.
std::vector<Tensor> associative_scan(const Combine& combine, std::vector<Tensor> elements, int64_t axis, ScanOptions options = {},
                                     Where where = Where::current());

/// All elements along an axis combined, which is dropped: a reduction by a function of your own. Where several values make up the state,
/// pass a tensor for each; for example the element, its place, and of two elements the larger one with its place. Work is shared out as in
/// sum: an axis of any length takes at most three kernels and is read once. Gradients flow through all operands, at the price of memory for
/// each halving of the axis.
/// Errors "associative_reduce.C1" to "C3" and "associative_reduce.capture" as above.
std::vector<Tensor> associative_reduce(const Combine& combine, std::vector<Tensor> elements, int64_t axis, ReduceOptions options = {},
                                       Where where = Where::current());

}  // namespace lockstep
