// SPDX-License-Identifier: Apache-2.0
// Private to the front end: one batch as the runs of a step see it.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/trace/host_values.h"

namespace lockstep::detail {

/// The data of `count` runs, as views. An input with `count` times the declared number of elements is cut into equal parts, one after the
/// other along axis 0, and so is every input with a dynamic extent; any other goes to every run as it is. Error "batch.length" when a
/// dynamic extent does not divide by `count`.
std::vector<Batch> microBatches(const Batch& batch, const std::vector<InputSpec>& inputs, int64_t count);

}  // namespace lockstep::detail
