// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the error of an index that is outside of its range.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontend/trace/host_values.h"
#include "passes/graph/check_indices.h"

namespace lockstep::detail {

/// Element `row` (row-major) of a checked index is `value` in `when` ("step 5"). The code is "batch.index" for an index
/// that is an input, and "step.index" for one that the program has computed.
Diagnostic describeWrongIndex(const passes::IndexCheck& check, int64_t row, int64_t value, std::string_view when);
/// `inputs` are those of one run. Throws Error "batch.index" for the first element of an input that is outside of the range of the op that
/// takes it as an index.
void checkGivenIndices(const std::vector<passes::IndexCheck>& checks, const std::vector<InputSpec>& inputs, const Batch& batch,
                       std::string_view when);

}  // namespace lockstep::detail
