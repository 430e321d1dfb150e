// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct SplitScansConfig {
  program::DeviceProfile profile;
};

/// Scans along few long lines run in three steps, so that more than a few workgroups have work: prefixes within the parts of each line,
/// those of the parts' last ones, and each element combined with what comes before its part. Parts are equally long; the last one is filled
/// up. Where only the total is wanted, two steps do, and what is left at the end of a line is combined with the rest.
///   %2 = cumsum %1 {axis = 0}    =>    %3 = reshape (pad %1)  %4 = cumsum %3 {axis = 1}  %5 = cumsum (narrow %4) {axis = 0} ...
/// Never fails.
graph::Graph splitScans(const graph::Graph& graph, const SplitScansConfig& config);

}  // namespace lockstep::passes
