// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct StoreOperandsConfig {
  const program::DeviceProfile& profile;
};

/// On devices with matrix units: what large products of f32 would compute again in each load of an operand (a norm times its gain plus its
/// offset) is stored shortly before them, once for those that run near each other. Products that run much later, as those of the gradient
/// do, get a copy of their own that is made right before them, so that it takes memory only there.
///   %y = add (mul %x, %gain), %offset   %a = matmul %y, %w ... %b = matmul %g, %y
///     =>   %y1 = barrier %y   %a = matmul %y1, %w ... %x2 = barrier %x, %g   %y2 = barrier (add (mul %x2, %gain), %offset)
///          %b = matmul %g, %y2
graph::Graph storeOperands(const graph::Graph& graph, const StoreOperandsConfig& config);

}  // namespace lockstep::passes
