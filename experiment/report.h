// SPDX-License-Identifier: Apache-2.0
// A run as one page of HTML that opens from disk: losses, metrics, what the model made, its modules, the memory of a step, settings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/run_folder.h"

namespace lockstep::experiment {

struct ReportData {
  std::string recipe, summary;
  uint64_t seed = 0;
  ProgramFacts facts;
  History history;
  std::vector<StoredExhibit> exhibits;          ///< by step
  std::map<std::string, std::string> settings;  ///< shown as they are
  double step_seconds = 0;                      ///< median; 0: not known
  std::string goal = {};                        ///< "loss at most 0.001 by step 200"; empty: there is none
  bool goal_reached = false;
  bool running = false;  ///< more is to come
};

/// Of each name at most this many; of more, ever so many are left out between the first and the last.
constexpr size_t kShownExhibits = 60;

/// Everything is inside: styles, script, pictures.
std::string reportPage(const ReportData& data);

}  // namespace lockstep::experiment
