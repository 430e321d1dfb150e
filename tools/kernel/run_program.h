// SPDX-License-Identifier: Apache-2.0
// `lockstep run` of what --dump-ir wrote: one stage once, or the last program for many steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::tools {

/// What was asked for.
struct ProgramOptions {
  std::string path, device = "auto";
  std::string inputs;                 ///< of one run
  std::string batches, load, save;    ///< of steps
  int64_t steps = 0, save_every = 0;  ///< 0: only after the last step
  std::vector<std::string> outs;
  bool json = false, sanitizes = false;  ///< the device is a sanitizer then
};

/// Runs a graph or program once and prints or writes its outputs.
Result<ExitCode> replayStage(const ProgramOptions& options);
/// Trains with a program that stands alone. Checkpoints go to `save`. The last one is also written when a step fails and nothing of it is
/// left in the states.
Result<ExitCode> trainProgram(const ProgramOptions& options);

}  // namespace lockstep::tools
