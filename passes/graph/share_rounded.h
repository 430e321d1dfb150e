// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/graph.h"

namespace lockstep::passes {

/// Mixed precision: a value that is rounded to f16 or bf16 for some of its readers, and whose elements that type has in any case (the
/// cotangent of a relu, made of one that was rounded), is read rounded by all of them. So it is kept once, in fewer bytes; no bit of a
/// result changes.
graph::Graph shareRounded(const graph::Graph& graph);

}  // namespace lockstep::passes
