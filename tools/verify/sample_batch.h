// SPDX-License-Identifier: Apache-2.0
// What a sample is trained with when two executors are compared: values, batches and how far apart they may come.
#pragma once

#include <cstdint>

#include "examples/models/samples.h"
#include "frontend/train/graph_runner.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::tools {

/// Rounding errors grow with every step: relative bounds of the loss at the first step, and more for each later one.
inline constexpr double kFirstLoss = 2e-6, kLossGrowth = 2e-5;
/// Of the parameters' way. It is usually 1e-5 to 1e-3; but a unit of relu whose input is within rounding of 0 may be on in one run and off
/// in the other, and Adam then moves its column of weights by the whole rate however small its gradient is: 2 % of the way for one column
/// and one step.
inline constexpr double kFinal = 0.1;

/// The parameters before the first step, by name.
ValueMap initialParameters(const examples::SampleProgram& sample);
/// Every input of the step's program: the batch, uniform in [0, 1) for f32 and below `integers` for i32, and the scalars of the step, which
/// count from 1.
ValueMap stepInputs(const examples::SampleProgram& sample, const passes::OptimizerConfig& config, int64_t step);

}  // namespace lockstep::tools
