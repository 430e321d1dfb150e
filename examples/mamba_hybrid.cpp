// SPDX-License-Identifier: Apache-2.0
// A layer of Mamba-2 puts each mark together with what follows it, and attention looks it up: four of eight marks, in sequences eight
// times as long as those that they trained on. No layer is told where a token stands.
#include "examples/recall_experiment.h"
#include "examples/recipes.h"

namespace lockstep::examples {

Recipe mamba_hybrid() {
  return {.name = "mamba-hybrid",
          .summary = "Mamba-2 and attention together recall symbols at lengths beyond training",
          .steps = 600,
          .report_every = 50,
          .measure_every = 100,
          .chunk = 10,
          .goal = {"accuracy_8x", Goal::Kind::AtLeast, 0.95, 600},
          .make = [](const ExperimentOptions& options) -> std::unique_ptr<Experiment> {
            return std::make_unique<RecallExperiment>(options, mambaHybridTask());
          }};
}

}  // namespace lockstep::examples
