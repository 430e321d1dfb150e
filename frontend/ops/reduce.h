// SPDX-License-Identifier: Apache-2.0
// Reductions over some axes or all of them. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/trace/tensor.h"

namespace lockstep {

struct ReduceOptions {
  bool keep_dims = false;  ///< keep the reduced axis with extent 1
};
/// Which axes a reduction goes over, in any order: sum(x), sum(x, 1), sum(x, {0, -1}). An axis that is named twice is an error
/// "<op>.axes".
class Axes {
 public:
  Axes() = default;  ///< all of them
  Axes(int64_t axis) : axes_(std::vector{axis}) {}
  Axes(std::optional<int64_t> axis) {  ///< absent: all of them
    if (axis) axes_ = std::vector{*axis};
  }
  Axes(std::initializer_list<int64_t> axes) : axes_(std::vector(axes)) {}
  Axes(std::vector<int64_t> axes) : axes_(std::move(axes)) {}
  /// Absent: all of them.
  [[nodiscard]] const std::optional<std::vector<int64_t>>& list() const { return axes_; }

 private:
  std::optional<std::vector<int64_t>> axes_;
};

/// Over no axes (an empty list) it is the tensor itself.
Tensor sum(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
/// f32 only.
Tensor mean(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
/// The gradient is exact where elements are 0; it takes n^2 multiplications for n factors.
Tensor prod(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
// Where several elements are equal the gradient goes to the first.
Tensor reduce_max(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Tensor reduce_min(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
/// log(sum(exp(x))) of f32, relative to the largest element, so that nothing overflows; of elements that all are -infinity it is that.
Tensor logsumexp(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
/// Whether any element, or all of them, hold; of bool, with a bool result.
Tensor any(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());
Tensor all(Tensor x, const Axes& axes = {}, ReduceOptions options = {}, Where where = Where::current());

/// Position of the largest or smallest element along an axis, which is dropped; without an axis, of the tensor in row-major order. The
/// result is i32; the lowest position where several are equal.
Tensor argmax(Tensor x, std::optional<int64_t> axis = {}, Where where = Where::current());
Tensor argmin(Tensor x, std::optional<int64_t> axis = {}, Where where = Where::current());

/// Sums up to and including each element along an axis; from each element on when reversed.
Tensor cumsum(Tensor x, int64_t axis, bool reverse = false, Where where = Where::current());

}  // namespace lockstep
