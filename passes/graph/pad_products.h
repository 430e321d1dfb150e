// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct PadProductsConfig {
  program::DeviceProfile profile;
};

/// Matrix units read operands by quads, and rows of odd lengths have none: an operand of a large product is copied into rows with zeros at
/// their ends, so that they begin at multiples of four. The other operand follows along the inner axis, and the result is a part of the
/// larger one.
///   %y: f32[m,1001] = matmul %x, %w   =>   %p: f32[k,1004] = barrier (pad %w)   %z: f32[m,1004] = matmul %x, %p   %y = narrow %z
/// Never fails.
Result<graph::Graph> padProducts(const graph::Graph& graph, const PadProductsConfig& config);

}  // namespace lockstep::passes
