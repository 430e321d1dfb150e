// SPDX-License-Identifier: Apache-2.0
// Private to the front end: running a user's function in a trace.
#pragma once

#include <source_location>
#include <vector>

#include "frontend/train/forward.h"
#include "ir/graph/graph.h"

namespace lockstep::detail {

/// Parameters, then inputs, then the function; its result becomes the output `kind` "loss" or "output". The inputs have no dynamic
/// extents. Errors: those of checkDeclarations(), "compile.function" without a model or a function, "compile.loss" when a loss is not a
/// scalar f32, and whatever the function throws.
graph::Graph traceFunction(const Module* model, const std::vector<InputSpec>& inputs, const ModelFunction& function, graph::OutputKind kind,
                           const std::source_location& where);

/// The same graph without its captures, which then cost nothing.
graph::Graph withoutCaptures(graph::Graph graph);

/// What traceFunction() checks before it calls the function.
void checkFunction(const Module* model, const std::vector<InputSpec>& inputs, const ModelFunction& function,
                   const std::source_location& where);

}  // namespace lockstep::detail
