// SPDX-License-Identifier: Apache-2.0
// Private to the front end: parameters by name <-> the flat state, and the form of checkpoint files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/host.h"
#include "frontend/io/safetensors.h"
#include "ir/graph/graph.h"

namespace lockstep::detail {

/// The flat state by parameter; padding is left out.
ParameterValues splitParameters(const graph::ParameterLayout& layout, const std::vector<float>& flat);
/// The other way, padding zero. Errors "parameters.unknown", "parameters.missing" (all of them named), "parameters.length".
std::vector<float> joinParameters(const graph::ParameterLayout& layout, const ParameterValues& values);

io::Array toArray(const BatchItem& item);

/// What a training run needs to go on.
struct TrainingState {
  std::string optimizer;
  uint64_t step = 0, seed = 0;
  std::map<std::string, std::vector<float>, std::less<>> states;  ///< flat, by leaf: params, m, v
};

/// Tensors: each parameter under its own name, moments as "m/<parameter>" and "v/<parameter>"; metadata lockstep.checkpoint = "1",
/// lockstep.optimizer, lockstep.step, lockstep.seed.
io::TensorFile formatCheckpoint(const graph::ParameterLayout& layout, const TrainingState& state);
/// Checks everything before it returns. Errors with exit code IncompatibleCheckpoint: "checkpoint.version", "checkpoint.metadata",
/// "checkpoint.optimizer", "checkpoint.missing", "checkpoint.unknown", "checkpoint.shape".
TrainingState readCheckpoint(const graph::ParameterLayout& layout, std::string_view optimizer, const std::vector<std::string>& leaves,
                             const io::TensorFile& file);

}  // namespace lockstep::detail
