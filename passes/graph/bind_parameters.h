// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "passes/graph/rewrite.h"

namespace lockstep::passes {

/// Parameters become views of the flat state leaf `state`. For programs that share a trainer's parameters.
///   %w = parameter "w"            =>  %p = state "params"  %w = reshape (narrow %p ...)
Result<graph::Graph> bindParameters(const graph::Graph& graph, std::string_view state);

/// A state leaf f32[elements] that starts at 0.
graph::ValueId flatState(graph::Builder& builder, std::string_view name, int64_t elements);
/// Copies the body of `in` in the same way, without outputs. Returns the flat leaf; invalid when there are no parameters.
graph::ValueId copyBound(Rewriter& rewriter, const graph::Graph& in, std::string_view state);

}  // namespace lockstep::passes
