// SPDX-License-Identifier: Apache-2.0
// Whether a run has reached what its recipe promises.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiment/run_folder.h"

namespace lockstep::experiment {

class GoalWatch {
 public:
  explicit GoalWatch(const Goal& goal) : goal_(goal) {}
  /// At the report of `step`, with what was measured there.
  void look(int64_t step, const Metrics& metrics, const std::vector<float>& losses);
  /// Everything that an earlier part of the run reported: a goal that was reached then is reached.
  void lookBack(const History& history, int64_t report_every);
  /// There is a goal, and it is reached or its step is over.
  [[nodiscard]] bool due(int64_t step) const { return exists() && (reached_at_ || step >= goal_.by_step); }
  [[nodiscard]] bool exists() const { return !goal_.metric.empty(); }
  [[nodiscard]] std::optional<int64_t> reachedAt() const { return reached_at_; }
  [[nodiscard]] std::string text() const;  ///< "loss at most 0.001 by step 200"

 private:
  Goal goal_;
  std::optional<int64_t> reached_at_;
};

}  // namespace lockstep::experiment
