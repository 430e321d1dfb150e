// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/graph/graph.h"

namespace lockstep::passes {

struct FuseConfig {
  /// Storage bindings that one group may need: distinct operands and results.
  uint32_t max_bindings = 8;
  /// Results of a product along m and along n that share what is loaded of its operands, and invocations that repeat each load of the left
  /// operand.
  int64_t product_rows = 128, product_columns = 128, product_lanes = 1;
  /// Operations that take the device as long as a dispatch in a level of its own.
  int64_t dispatch_operations = 0;
  /// The largest sum of two independent products, in elements, that is left to its reader. If one product computed it, that product would
  /// wait for the other one for a level, which takes longer than writing and reading one more tensor of this size. 0: products add.
  int64_t late_sums = 0;
  /// Results from which element ops of many operations stay out of a product: a kernel with matrix units has one workgroup per unit, and
  /// nothing runs beside what it computes for its stores, whereas a map of its own computes while it waits for memory. 0: they never do.
  int64_t heavy_apart = 0;
  /// False: every computing node becomes a group of its own (--disable-pass fuse); the result is equal within rounding.
  bool merge = true;
  /// Only nodes below this one join others; the rest are groups of their own. For who looks for the node whose joining made a result wrong.
  size_t joining = SIZE_MAX;
};

/// Puts every computing node into a `group` node: element chains (kind "map"), reductions over the rows of one space with the elements
/// around them ("rows"), reductions over other axes ("columns"), contractions with prologue and epilogue ("contract"). Views and cheap
/// nodes are copied into the groups that use them; leaves, contiguous slices of leaves and storage nodes stay outside.
///   %1 = exp %x  %2 = add %1, %y    =>    %3 = group %x, %y {kind = "map"} { %1 = exp %x  %2 = add %1, %y  yield %2 }
/// Never fails.
Result<graph::Graph> fuse(const graph::Graph& graph, const FuseConfig& config = {});

}  // namespace lockstep::passes
