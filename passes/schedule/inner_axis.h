// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

/// Neighbours along the inner axis of a product for which the place of its operands' elements, and whether they exist, follows from that
/// of the first one: the channels of a convolution in its windows, the pixels of a row in its gradient. A divisor of the axis; 1 where
/// there are none.
int64_t innerRun(const graph::Graph& body, const ContractNode& contract);

}  // namespace lockstep::passes
