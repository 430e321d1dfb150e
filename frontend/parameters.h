// SPDX-License-Identifier: Apache-2.0
// Private to the front end: parameters by name <-> the flat state.
#pragma once

#include <vector>

#include "frontend/host.h"
#include "frontend/io/array.h"
#include "frontend/optim.h"
#include "frontend/session.h"
#include "frontend/shared_model.h"

namespace lockstep::detail {

/// The parameters of a model as the passes see them.
std::vector<graph::ParameterInfo> parameterInfos(const Module& model);

/// The flat values that a seed gives.
std::vector<float> initialParameters(const TrainedModel& model, uint64_t seed);
/// Writes flat values; an average of the parameters begins at them.
void writeParameters(const TrainedModel& model, const std::vector<float>& flat);

/// A flat state by parameter; padding is left out.
ParameterValues splitParameters(const graph::ParameterLayout& layout, const std::vector<float>& flat);

/// All parameters and buffers by path name.
ParameterValues readValues(const TrainedModel& model);
/// Sets all of them. Errors "parameters.unknown", "parameters.missing" (all of them named), "parameters.length" before anything is written.
void writeValues(const TrainedModel& model, const ParameterValues& values);

/// Error "parameters.ema" when the optimizer averages nothing.
void requireAverage(const TrainedModel& model);

io::Array toArray(const BatchItem& item);
io::Array toArray(const StepValue& value);

}  // namespace lockstep::detail
