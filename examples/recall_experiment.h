// SPDX-License-Identifier: Apache-2.0
// The recall task as an experiment: what the samples of state-space models share.
#pragma once

#include "examples/models/recall.h"
#include "experiment/experiment.h"

namespace lockstep::examples {

class RecallExperiment : public Experiment {
 public:
  RecallExperiment(const ExperimentOptions& options, const RecallTask& task);
  Trainer& trainer() override { return trainer_; }
  Batch batch(uint64_t step) override;
  /// The shares of right answers at the length of training, and at eight times that.
  Metrics measure() override;
  /// These shares over lengths, and some answers.
  std::vector<Exhibit> exhibits() override;

 private:
  RecallTask task_;
  uint64_t seed_;
  ModelTrainer<Mixers> trainer_;
  RecallCheck check_;
  RecallBatch batch_;
};

}  // namespace lockstep::examples
