// SPDX-License-Identifier: Apache-2.0
// Private to the front end: an optimizer as the pass takes it, and its numbers for one step.
#pragma once

#include <cstdint>

#include "frontend/optim.h"
#include "frontend/session.h"

namespace lockstep::detail {

passes::OptimizerConfig optimizerConfig(const OptimizerSpec& spec, const std::vector<graph::ParameterInfo>& parameters);

/// The step scalars of step t (1-based), in f64; by value, so that later changes of the rate do not reach steps in flight.
Scalars stepScalars(const OptimizerSpec& spec, uint64_t t);

}  // namespace lockstep::detail
