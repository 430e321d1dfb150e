// SPDX-License-Identifier: Apache-2.0
// Two layers of Mamba-1 remember the one symbol that followed a mark, in sequences eight times as long as those that they trained on.
#include "examples/recall_experiment.h"
#include "examples/recipes.h"

namespace lockstep::examples {

Recipe mamba() {
  return {.name = "mamba",
          .summary = "a state-space model recalls symbols at lengths beyond training",
          .steps = 600,
          .report_every = 50,
          .measure_every = 100,
          .chunk = 10,
          .goal = {"accuracy_8x", Goal::Kind::AtLeast, 0.95, 600},
          .make = [](const ExperimentOptions& options) -> std::unique_ptr<Experiment> {
            return std::make_unique<RecallExperiment>(options, mambaTask());
          }};
}

}  // namespace lockstep::examples
