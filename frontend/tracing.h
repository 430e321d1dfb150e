// SPDX-License-Identifier: Apache-2.0
// Private to the front end: running a user's function in a trace.
#pragma once

#include <functional>
#include <source_location>
#include <vector>

#include "frontend/host.h"
#include "frontend/trainer.h"
#include "ir/graph/graph.h"

namespace lockstep::detail {

/// Parameters, then inputs, then the function; its result becomes the output `kind` "loss" or "output". Errors: "compile.input" for a bad
/// declaration, "compile.loss" when a loss is not a scalar f32, and whatever the function throws.
graph::Graph traceFunction(const Module* model, const std::vector<InputSpec>& inputs, const std::function<Tensor(const Inputs&)>& function,
                           graph::OutputKind kind, const std::source_location& where);

}  // namespace lockstep::detail
