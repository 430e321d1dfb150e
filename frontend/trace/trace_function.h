// SPDX-License-Identifier: Apache-2.0
// Private to the front end: running a user's function in a trace.
#pragma once

#include <vector>

#include "frontend/train/forward.h"
#include "ir/graph/graph.h"
#include "ir/support/where.h"

namespace lockstep::detail {

/// Parameters, then inputs, then the function; its result becomes the output "loss", or the outputs that it names. The inputs have no
/// dynamic extents. Errors: those of checkDeclarations(), "compile.function" without a model or a function, "compile.loss" when a loss is
/// not a scalar f32, "forward.output" for an output without a name of its own, and whatever the function throws. Buffers may change where
/// a loss is traced, and where `updates_buffers` says so.
graph::Graph traceFunction(const Module* model, const std::vector<InputSpec>& inputs, const ModelFunction& function, graph::OutputKind kind,
                           const Where& where, bool updates_buffers = false);

/// The same graph without its captures, which then cost nothing.
graph::Graph withoutCaptures(graph::Graph graph);

/// What traceFunction() checks before it calls the function.
void checkFunction(const Module* model, const std::vector<InputSpec>& inputs, const ModelFunction& function, const Where& where);

}  // namespace lockstep::detail
