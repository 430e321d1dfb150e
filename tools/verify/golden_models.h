// SPDX-License-Identifier: Apache-2.0
// The models of the golden training runs.
#pragma once

#include "ir/graph/graph.h"
#include "ir/support/result.h"
#include "tools/verify/golden.h"

namespace lockstep::tools {

/// The loss of the file's model as a graph; inputs are named as in its batches. kUnsupportedCode when the model does not exist.
Result<graph::Graph> traceGoldenModel(const GoldenTraining& golden);

}  // namespace lockstep::tools
