// SPDX-License-Identifier: Apache-2.0
// The training loop of a recipe: steps in submissions, reports, the live panel, the run's folder.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "experiment/experiment.h"
#include "experiment/run_folder.h"
#include "ir/support/result.h"

namespace lockstep::experiment {

struct RunSettings {
  std::optional<RunFolder> folder = {};  ///< absent: nothing is written
  std::filesystem::path save = {};       ///< where the model of Recipe::model goes after the last step; empty: "model" in the folder
  bool resume = false;                   ///< from the folder's last checkpoint
  bool json = false;                     ///< one JSON object a report line, the last with "final": true
  bool quiet = false;                    ///< only the last line
  bool live = false;                     ///< draw the panel, on stderr, so that stdout can be piped
  double checkpoint_seconds = 10;        ///< at least so long between two checkpoints; they are made at report lines, from the first on
  std::string resume_command = {};       ///< what resumes the run in its folder, told when it is interrupted
  /// Set from outside to stop after the submission that is running.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Trains and reports on stdout. Interrupted: everything that was reached is written and the exit code is Interrupted; losses and
/// checkpoint come first, then the model, pictures and pages last, and one of those that fails is a warning. What fails between two steps
/// leaves a checkpoint. A loss that is not finite fails with "train.not_finite" and exit code NumericCheck after the losses were written;
/// the last checkpoint stays.
Result<ExitCode> runTraining(const Recipe& recipe, const ExperimentOptions& options, const RunSettings& settings);

}  // namespace lockstep::experiment
