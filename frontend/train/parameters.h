// SPDX-License-Identifier: Apache-2.0
// Private to the front end: parameters by name <-> the flat state.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/io/array.h"
#include "frontend/optim/optim.h"
#include "frontend/trace/host_values.h"
#include "frontend/train/shared_model.h"

namespace lockstep::detail {

/// The parameters of a model as the passes see them: which of them decay is the optimizer's filter, or else their own flag.
std::vector<graph::ParameterInfo> parameterInfos(const Module& model);

/// Writes the values that a seed gives; averages begin at them.
void initialiseParameters(const TrainedModel& model, uint64_t seed);
/// Sets the parameters; averages begin again at them.
void writeParameters(const TrainedModel& model, const std::vector<float>& flat);
/// Sets one of them. Errors "parameters.unknown" and "parameters.length".
void writeParameter(const TrainedModel& model, const std::string& name, std::span<const float> values);
/// Error "parameters.ema" when no averages are kept.
void requireAverages(const TrainedModel& model);
/// The averages, if there are any, become the parameters as they are now.
void restartAverages(const TrainedModel& model);

/// The flat state by parameter; padding is left out.
ParameterValues splitParameters(const graph::ParameterLayout& layout, const std::vector<float>& flat);
/// The other way, padding zero. Errors "parameters.unknown", "parameters.missing" (all of them named), "parameters.length".
std::vector<float> joinParameters(const graph::ParameterLayout& layout, const ParameterValues& values);

}  // namespace lockstep::detail
