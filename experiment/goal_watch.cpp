// SPDX-License-Identifier: Apache-2.0
#include "experiment/goal_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lockstep::experiment {
namespace {

/// The mean of the last 20 losses up to a step.
double recentLoss(const std::vector<float>& losses, int64_t step) {
  const auto window = std::min<int64_t>(step, 20);
  const auto end = losses.begin() + step;
  return std::accumulate(end - window, end, 0.0) / static_cast<double>(std::max<int64_t>(1, window));
}

}  // namespace

void GoalWatch::look(int64_t step, const Metrics& metrics, const std::vector<float>& losses) {
  if (!exists() || reached_at_ || step > goal_.by_step) return;
  double value = NAN;
  if (goal_.metric == "loss") value = recentLoss(losses, step);
  for (const auto& [name, metric] : metrics) {
    if (name == goal_.metric) value = metric;
  }
  if (goal_.kind == Goal::Kind::AtMost ? value <= goal_.value : value >= goal_.value) reached_at_ = step;
}

void GoalWatch::lookBack(const History& history, int64_t report_every) {
  const auto done = static_cast<int64_t>(history.losses.size());
  for (int64_t step = report_every; step <= done; step += report_every) {
    const auto found = std::ranges::find(history.reports, step, &History::Report::step);
    look(step, found == history.reports.end() ? Metrics{} : found->metrics, history.losses);
  }
}

std::string GoalWatch::text() const {
  return fmt::format("{} {} {:.4g} by step {}", goal_.metric, goal_.kind == Goal::Kind::AtMost ? "at most" : "at least", goal_.value,
                     goal_.by_step);
}

}  // namespace lockstep::experiment
