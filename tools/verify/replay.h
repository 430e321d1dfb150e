// SPDX-License-Identifier: Apache-2.0
// Runs a stage of a dump folder again: a graph on the evaluator, a program on a device.
#pragma once

#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "ir/support/finding.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct Replayed {
  /// One tensor per output, named "<kind>.<name>": "loss.loss", "next_state.params".
  io::TensorFile outputs;
  std::vector<Finding> findings;  ///< of the device "sanitizer"
};

/// `path` ends in .graph or .program; `inputs` holds parameters, states and inputs by name, as --dump-ir writes them. Codes
/// replay.stage, replay.input, replay.device and those of the readers.
Result<Replayed> replay(const std::string& path, const io::TensorFile& inputs, const std::string& device);

/// One line per output: its name, its shape, and its value or norm.
std::string summarise(const io::TensorFile& outputs);

}  // namespace lockstep::tools
