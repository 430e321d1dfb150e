// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct SplitReductionsConfig {
  program::DeviceProfile profile;
};

/// A long sum to few results would keep few workgroups busy while the device idles, so it becomes two stages, and so does a product whose
/// inner axis is longer than the loops of the device. Any length is split: neutral elements fill the last part up. The tree is the same on
/// every device of a profile; results differ from one-stage sums in rounding only. Four forms: a reduction of everything, a reduction over
/// leading axes, one over leading and trailing axes, the inner axis of a small matrix product. Above the binding limit the rows of a
/// reduction of everything are short, so that slices of whole rows have partial sums that can be bound (splitDispatches).
///   %2: f32[] = sum %1 {axes = [0, 1]}   =>   %3: f32[600] = sum (reshape %1) {axes = [1]}   %2: f32[] = sum %3 {axes = [0]}
///   %2: f32[64,64] = matmul %0, %1       =>   %3: f32[8,64,64] = matmul (blocks of %0), (blocks of %1)   %2 = sum %3 {axes = [0]}
/// Never fails.
Result<graph::Graph> splitReductions(const graph::Graph& graph, const SplitReductionsConfig& config = {});

}  // namespace lockstep::passes
