// SPDX-License-Identifier: Apache-2.0
// The measure of single ops: each element within what WGSL's accuracy of each operation adds up to (boundGraph).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ir/graph/op_def.h"
#include "tools/verify/element_check.h"

namespace lockstep {

/// What the program computes in exact arithmetic may be off by `tolerance`, since the kernels' polynomials are approximations. Returns how
/// many elements have no known bound, so that `tolerance` stands for it there, too.
inline size_t expectWithinBounds(const std::vector<graph::Tensor>& got, const std::vector<graph::Tensor>& want,
                                 const std::vector<RoundingBounds>& bounds, double tolerance, const std::string& what) {
  EXPECT_EQ(got.size(), want.size()) << what;
  EXPECT_EQ(bounds.size(), want.size()) << what;
  size_t unbounded = 0;
  for (size_t output = 0; output < std::min({got.size(), want.size(), bounds.size()}); ++output) {
    const graph::TensorType& type = want[output].type;
    EXPECT_EQ(got[output].type, type) << what;
    if (got[output].data.size() != want[output].data.size()) continue;
    const tools::ElementCheck check = tools::checkElements(got[output].data, want[output].data, type.dtype, bounds[output],
                                                           {.program = tolerance, .unbounded = tolerance});
    const std::string element = tools::indexText(type.shape, static_cast<int64_t>(check.numbers.worst));
    EXPECT_TRUE(check.within()) << tools::toText(check, fmt::format("{}: output {}{}", what, output, element));
    unbounded += check.unbounded;
  }
  return unbounded;
}

}  // namespace lockstep
