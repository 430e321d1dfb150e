// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/sort_lines.h"

namespace lockstep::graph {

Status checkSortable(std::string_view op, std::string_view label, const Shape& shape, int64_t axis) {
  std::vector<int64_t> pairs = shape.extents();
  int64_t& length = pairs[static_cast<size_t>(axis)];
  int64_t compared = length;
  if (length > kCounted) {
    length = (length + kRun - 1) / kRun * kRun;
    compared = kRun;
  }
  pairs.push_back(compared);
  return checkExtents(op, label, pairs);
}

}  // namespace lockstep::graph
