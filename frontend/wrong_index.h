// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what the outputs of checkIndices say.
#pragma once

#include <optional>
#include <string_view>

#include "passes/check_indices.h"

namespace lockstep::detail {

/// Error "step.index": element `row` (row-major) of a checked index of the traced graph is `value`. `when`: "step 5".
Diagnostic describeWrongIndex(const graph::Graph& traced, const passes::IndexCheck& check, int64_t row, int64_t value,
                              std::string_view when);

}  // namespace lockstep::detail
