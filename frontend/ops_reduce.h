// SPDX-License-Identifier: Apache-2.0
// Reductions over one axis or all of them. Axes may be negative (from the end).
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/tensor.h"

namespace lockstep {

struct ReduceOptions {
  bool keep_dims = false;  ///< keep the reduced axis with extent 1
};
/// Over one axis, or over all of them when there is none.
Tensor sum(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());
/// f32 only.
Tensor mean(Tensor x, std::optional<int64_t> axis = {}, ReduceOptions options = {}, Where where = Where::current());

/// Sums up to and including each element along an axis; from each element on when reversed.
Tensor cumsum(Tensor x, int64_t axis, bool reverse = false, Where where = Where::current());

}  // namespace lockstep
