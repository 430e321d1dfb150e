// SPDX-License-Identifier: Apache-2.0
// Private to the front end: an optimizer as users write it -> as the pass takes it.
#pragma once

#include <vector>

#include "frontend/optim/optim.h"
#include "frontend/optim/precision.h"
#include "ir/graph/graph.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::detail {

/// Filters are asked once for every parameter. Errors of checkOptimizer(); Error "optimizer.filter" when one matches none; a group counts
/// as matched by parameters that an earlier group takes. Those of checkPrecision(); "precision.skip" for loss scaling that may not leave
/// out steps.
passes::OptimizerConfig optimizerConfig(const OptimizerSpec& spec, const std::vector<graph::ParameterInfo>& parameters,
                                        int64_t accumulate = 1, const Precision& precision = {});

}  // namespace lockstep::detail
