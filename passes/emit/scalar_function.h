// SPDX-License-Identifier: Apache-2.0
// Functions of scalars (ir/graph/scalar_graph.h) in kernels.
#pragma once

#include <span>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/kernel/builder.h"

namespace lockstep::passes {

/// Emits the results of `function`; `inputs` in the order of its leaves.
std::vector<kernel::ValueId> emitScalars(kernel::Builder& builder, const graph::Graph& function, std::span<const kernel::ValueId> inputs);

}  // namespace lockstep::passes
