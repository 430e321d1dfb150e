// SPDX-License-Identifier: Apache-2.0
// Private to the optimizer pass: parameters of which only some rows are trained.
#pragma once

#include <vector>

#include "ir/graph/builder.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::passes {

/// Whether each element of a parameter is in one of the ranges, as bool of the shape `as`: the parameter's own, or one that holds its
/// elements one after the other and padding after them. It is computed from the place of an element, and read from nowhere.
graph::ValueId isTrained(graph::Builder& b, const graph::Shape& parameter, const std::vector<RowRange>& rows, const graph::Shape& as);

}  // namespace lockstep::passes
