// SPDX-License-Identifier: Apache-2.0
// Reductions over one axis or all of them. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/trace/tensor.h"

namespace lockstep {

struct ReduceOptions {
  bool keep_dims = false;  ///< keep the reduced axis with extent 1
};
/// Over one axis, or over all of them when there is none.
Tensor sum(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
/// f32 only.
Tensor mean(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
/// The gradient is exact where elements are 0; it takes n^2 multiplications for n factors.
Tensor prod(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
// Where several elements are equal the gradient goes to the first.
Tensor reduce_max(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
Tensor reduce_min(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
/// Whether any element, or all of them, hold; of bool, with a bool result.
Tensor any(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
Tensor all(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());

/// Position of the largest or smallest element along an axis, which is dropped; without an axis, of the tensor in row-major order. The
/// result is i32; the lowest position where several are equal.
Tensor argmax(Tensor x, std::optional<int64_t> axis = {}, Where where = Where::current());
Tensor argmin(Tensor x, std::optional<int64_t> axis = {}, Where where = Where::current());

/// Sums up to and including each element along an axis; from each element on when reversed.
Tensor cumsum(Tensor x, int64_t axis, bool reverse = false, Where where = Where::current());

}  // namespace lockstep
