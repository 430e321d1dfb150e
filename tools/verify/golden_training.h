// SPDX-License-Identifier: Apache-2.0
// A recorded training run, run again on any runner, and how far roundings alone can move it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/train/graph_runner.h"
#include "ir/support/result.h"
#include "tools/verify/golden.h"
#include "tools/verify/golden_compare.h"

namespace lockstep::tools {

ValueMap valuesOf(const ArrayMap& arrays);
/// The outputs of one kind, by name.
ValueMap select(const StepOutputs& outputs, graph::OutputKind kind);

using RunnerMaker = std::function<Result<std::unique_ptr<GraphRunner>>(const graph::Graph&, const passes::CompileOptions&)>;
/// Called before each step (1-based); may change the runner's states.
using BeforeStep = std::function<Status(GraphRunner&, int64_t step)>;

Result<TrainingOutcome> trainGolden(const GoldenTraining& golden, const RunnerMaker& make, const BeforeStep& before = {});

/// How far the evaluator's run goes from the exact one when every parameter is moved at random by up to 2 units in the last place of f32
/// before each step, the most over 8 runs. A smooth model stays near 1e-6; where a unit of relu is within a rounding of 0, f32 may have it
/// on or off, and the runs part. Runs 9 times as long as the evaluator's own, on all cores.
Result<TrainingSensitivity> trainingSensitivity(const GoldenTraining& golden);

}  // namespace lockstep::tools
