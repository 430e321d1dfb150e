// SPDX-License-Identifier: Apache-2.0
// Private to the front end: buffers of a model by their path names.
#pragma once

#include <utility>

#include "frontend/io/safetensors.h"
#include "frontend/trace/host_values.h"
#include "frontend/train/shared_model.h"

namespace lockstep::detail {

/// Allocates them at their initial values.
void declareBuffers(const Module& module, States& states);
ParameterValues readBuffers(const TrainedModel& model);
/// What belongs to parameters, and what to buffers. Errors "parameters.missing", "parameters.length" and
/// "parameters.type" (a number that an integer buffer cannot hold) for buffers.
std::pair<ParameterValues, ParameterValues> splitBuffers(const TrainedModel& model, const ParameterValues& values);
void writeBuffers(const TrainedModel& model, const ParameterValues& values);

/// Parameters and buffers together, by path name.
ParameterValues readValues(const TrainedModel& model);
/// Sets all of them. Errors "parameters.unknown", "parameters.missing", "parameters.length", "parameters.type" before anything is
/// written.
void writeValues(const TrainedModel& model, const ParameterValues& values);
/// Sets those that the file has, bit for bit. Errors "parameters.unknown", "parameters.type" for an array of another type or shape, before
/// anything is written.
void writeArrays(const TrainedModel& model, const io::TensorFile& file);

}  // namespace lockstep::detail
