// SPDX-License-Identifier: Apache-2.0
#include "examples/recall_experiment.h"

#include "frontend/io/plot.h"

namespace lockstep::examples {

RecallExperiment::RecallExperiment(const ExperimentOptions& options, const RecallTask& task)
    : task_(task), seed_(options.seed), trainer_(compile(options.with(recallSpec(task)))), check_(trainer_, task, options.seed) {}

Batch RecallExperiment::batch(uint64_t step) {
  batch_ = recallBatch(task_, seed_, step, kRecallBatch, kRecallLength);
  return {{"tokens", batch_.tokens}, {"answers", batch_.answers}};
}

Metrics RecallExperiment::measure() { return {{"accuracy", check_.accuracy(0)}, {"accuracy_8x", check_.accuracy(3)}}; }

std::vector<Exhibit> RecallExperiment::exhibits() {
  io::Series right{.name = "right answers", .x = {}, .y = {}}, chance{.name = "by chance", .x = {}, .y = {}};
  for (size_t i = 0; i < std::size(RecallCheck::kTimes); ++i) {
    right.x.push_back(static_cast<double>(RecallCheck::kTimes[i]));
    right.y.push_back(check_.accuracy(i));
    chance.y.push_back(1 / static_cast<double>(task_.symbols));
  }
  chance.x = right.x;
  return {{"lengths", io::plot({right, chance}, {.title = "recall beyond the length of training",
                                                 .x_label = "length in lengths of training",
                                                 .y_label = "share",
                                                 .log_y = false})},
          {"answers", check_.text()}};
}

}  // namespace lockstep::examples
