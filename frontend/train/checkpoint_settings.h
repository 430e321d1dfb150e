// SPDX-License-Identifier: Apache-2.0
// Private to the front end: a model, its optimizer and the place in its data as entries of a checkpoint (runtime/checkpoint_file.h).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "frontend/optim/optim.h"
#include "frontend/train/checkpoint_data.h"
#include "ir/graph/graph.h"
#include "passes/graph/optimizer_config.h"
#include "runtime/checkpoint_file.h"

namespace lockstep::detail {

void writeSchedule(Metadata& metadata, const std::string& prefix, const Schedule& schedule);
/// Rates are finite and not negative, as ls::schedule makes them. Error "checkpoint.metadata".
Schedule readSchedule(const Metadata& metadata, const std::string& prefix);

void writeCursor(Metadata& metadata, const DataCursor& cursor);
DataCursor readCursor(const Metadata& metadata);

/// What all checkpoints of a model and an optimizer have in common.
CheckpointForm checkpointForm(const std::vector<graph::ParameterInfo>& parameters, const passes::OptimizerConfig& config);
/// Its entries and those of the learning rate.
Metadata checkpointEntries(const CheckpointForm& form, const Schedule& schedule);

}  // namespace lockstep::detail
