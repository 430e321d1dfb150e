// SPDX-License-Identifier: Apache-2.0
// What ops that take an index share.
#pragma once

#include "ir/ops/common.h"

namespace lockstep::graph {

/// `idx` has the rank of `x` and its extents along all axes but `axis`.
Status checkAlike(std::string_view op, std::string_view label, const Shape& x, const Shape& idx, int64_t axis);

/// Operand 0 at `position` with the axis replaced by `wanted` (i32), or 0 where that is outside. The read itself is clamped into bounds, so
/// a value that is not wanted is never multiplied (0 * inf is no 0).
kernel::ValueId emitSelected(ElementEmitter& emitter, size_t axis, kernel::ValueId wanted, std::vector<kernel::ValueId> position);

}  // namespace lockstep::graph
