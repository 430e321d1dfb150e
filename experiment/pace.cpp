// SPDX-License-Identifier: Apache-2.0
#include "experiment/pace.h"

#include <algorithm>
#include <numeric>

namespace lockstep::experiment {

void Pace::add(double seconds, int64_t count) {
  const double each = seconds / static_cast<double>(count);
  if (begun_) {
    seconds_.insert(seconds_.end(), static_cast<size_t>(count), each);
  } else {
    first_ = each;
  }
  begun_ = true;
}

std::optional<double> Pace::stepsPerSecond() const {
  const size_t window = std::min<size_t>(seconds_.size(), 100);
  const double recent = std::accumulate(seconds_.end() - static_cast<ptrdiff_t>(window), seconds_.end(), 0.0);
  if (!(recent > 0)) return {};
  return static_cast<double>(window) / recent;
}

double Pace::medianSeconds() const {
  if (seconds_.empty()) return first_;
  std::vector<double> values = seconds_;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace lockstep::experiment
