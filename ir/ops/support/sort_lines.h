// SPDX-License-Identifier: Apache-2.0
// How ops that sort lines of a tensor cut them.
#pragma once

#include "ir/ops/support/common.h"

namespace lockstep::graph {

/// A line of at most kCounted elements is sorted by counting, which compares all pairs without a barrier or a second level. A longer line
/// is cut into runs of kRun, which are merged two by two: n (kRun + log^2 n) steps.
inline constexpr int64_t kCounted = 1024, kRun = 256;

inline constexpr std::string_view kSortable =
    "the element count times the extent of the axis (times 256 for an extent above 1024) fits in 32 bits";
Status checkSortable(std::string_view op, std::string_view label, const Shape& shape, int64_t axis);

}  // namespace lockstep::graph
