// SPDX-License-Identifier: Apache-2.0
// The training loop of `lockstep train`: reports, progress, output files. Independent of the samples, so that tests can drive it.
#pragma once

#include <atomic>
#include <string>

#include "ir/support/result.h"
#include "tools/sample.h"

namespace lockstep::tools {

struct TrainSettings {
  bool json = false;
  std::string out_directory = {};  ///< empty: nothing is written
  bool live = false;               ///< draw a live line (on stderr, so that stdout can be piped)
  /// Set from outside to stop after the chunk that is running.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Trains and reports. Interrupted: what was reached is written and the exit code is Interrupted. A loss that is not finite fails with
/// train.not_finite and NumericCheck, after the losses were written.
Result<ExitCode> runTraining(const Sample& sample, const SampleOptions& options, const TrainSettings& settings);

}  // namespace lockstep::tools
