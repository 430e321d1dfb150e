// SPDX-License-Identifier: Apache-2.0
// Private to the front end: plain data as the metadata texts of a checkpoint. checkpoint.h has the keys.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "frontend/optim/optim.h"
#include "frontend/train/checkpoint_data.h"
#include "frontend/train/device_states.h"
#include "ir/graph/graph.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::detail {

using Metadata = std::map<std::string, std::string, std::less<>>;

[[noreturn]] void incompatible(std::string_view code, std::string message, std::string remedy = {});

/// Beyond this a count of steps is damage: at a microsecond per step it is 285 years.
constexpr int64_t kMostSteps = int64_t{1} << 53;

/// Error "checkpoint.metadata" when it is absent or no number.
uint64_t readNumber(const Metadata& metadata, const std::string& key);
/// A number from 0 to kMostSteps. Likewise.
uint64_t readStep(const Metadata& metadata, const std::string& key);

void writeSchedule(Metadata& metadata, const std::string& prefix, const Schedule& schedule);
/// Rates are finite and not negative, as ls::schedule makes them. Error "checkpoint.metadata".
Schedule readSchedule(const Metadata& metadata, const std::string& prefix);

void writeCursor(Metadata& metadata, const DataCursor& cursor);
DataCursor readCursor(const Metadata& metadata);

void writeOptimizer(Metadata& metadata, const passes::OptimizerConfig& config);
void writeParameters(Metadata& metadata, const std::vector<graph::ParameterInfo>& parameters, const passes::OptimizerConfig& config);
void writeStates(Metadata& metadata, const std::map<std::string, StateInfo, std::less<>>& states);
std::map<std::string, StateInfo, std::less<>> readStates(const Metadata& metadata);

/// Throws "checkpoint.<what>" for the first key that begins with "lockstep.<what>." and is not the same on both sides.
void compareMetadata(std::string_view what, const Metadata& ours, const Metadata& file);

}  // namespace lockstep::detail
