// SPDX-License-Identifier: Apache-2.0
// Golden op names in terms of the front end's functions.
#pragma once

#include <string>

#include "ir/graph/graph.h"
#include "ir/support/result.h"
#include "tools/verify/golden.h"

namespace lockstep::tools {

/// The case as a graph: an input for each operand, a result for each golden output and, when there are gradients, an input
/// "cotangent.<result>" for each cotangent and the loss sum(result * cotangent). kUnsupportedCode when the op does not exist.
Result<graph::Graph> traceGoldenCase(const GoldenCase& golden);

}  // namespace lockstep::tools
