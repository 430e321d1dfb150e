// SPDX-License-Identifier: Apache-2.0
// Elements by their index, and the sums that go the other way. Indices are i32; one that is outside reads 0 and adds nothing. Sums run in
// ascending order of the sources, so they give the same bits every time. Axes may be negative (from the end).
#pragma once

#include <cstdint>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// Elements of x along `axis` at the positions of `indices`, which has the rank of x. Its extents along the other axes broadcast with those
/// of x (NumPy's take_along_axis).
Tensor take_along_axis(Tensor x, Tensor indices, int64_t axis, Where where = Where::current());
/// The same, but along the other axes `indices` covers the first elements of x and may be shorter (PyTorch's gather).
Tensor gather(Tensor x, int64_t axis, Tensor indices, Where where = Where::current());
/// Whole slices of an axis: `indices` has one axis.
Tensor index_select(Tensor x, int64_t axis, Tensor indices, Where where = Where::current());
/// x with source[.., n, ..] added at indices[n] along `axis`.
Tensor index_add(Tensor x, int64_t axis, Tensor indices, Tensor source, Where where = Where::current());
/// The sum of the slices that name each of `segments` segments.
Tensor segment_sum(Tensor source, Tensor indices, int64_t segments, int64_t axis = 0, Where where = Where::current());
/// x with each element of `source` added at the position along `axis` that the element of `indices` beside it names.
Tensor scatter_add(Tensor x, int64_t axis, Tensor indices, Tensor source, Where where = Where::current());

/// x with `rows` in place of those of an axis from `at` on; rows outside of x are left out, and an error of the step. `at` is i32[], or
/// i32[B] with a place for each entry of the first axis. `rows` has the shape of x, but may be shorter along the axis. In a loop (scan)
/// that carries x on, only the rows are written. With 16-bit or 8-bit elements, a row
/// must fill whole 32-bit words.
Tensor write_rows(Tensor x, Tensor rows, Tensor at, int64_t axis, Where where = Where::current());
/// Elements start .. start + length - 1 of an axis, where the start is a value: i32[], or i32[B] with one for each entry of the first axis.
/// Elements outside of x are 0, and an error of the step. Errors "narrow.C2" for a length that x does not have, "narrow.start" for another
/// start.
Tensor narrow(Tensor x, int64_t axis, Tensor start, int64_t length, Where where = Where::current());

/// Values in order along an axis, and where each one was.
struct Sorted {
  Tensor values;
  Tensor indices;
};
/// Stable; NaN is the largest. A line of up to 1024 elements is sorted by comparing all pairs, a longer one by merging runs.
Sorted sort(Tensor x, int64_t axis = -1, bool descending = false, Where where = Where::current());
/// The k largest of each line, largest first; of equal ones the first.
Sorted top_k(Tensor x, int64_t k, int64_t axis = -1, Where where = Where::current());

}  // namespace lockstep
