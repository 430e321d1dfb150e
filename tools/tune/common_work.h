// SPDX-License-Identifier: Apache-2.0
// What `lockstep tune` measures where it is not told of a model.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "ir/program/profile.h"

namespace lockstep::tools {

/// Products, sums, norms, softmax and maps of common sizes, in f32 and, but for products, in bf16: one graph each. On CPUs, sizes that
/// take about as long there.
std::vector<graph::Graph> commonWork(program::ExecutionStyle style);

}  // namespace lockstep::tools
