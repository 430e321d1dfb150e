// SPDX-License-Identifier: Apache-2.0
// How fast a run is, from the time of each submission. The first one is left out of what is to come: the driver compiles in it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lockstep::experiment {

class Pace {
 public:
  /// A submission of `count` steps, 1 at least, took so long.
  void add(double seconds, int64_t count);
  /// Of the last hundred steps; nothing before the second submission.
  [[nodiscard]] std::optional<double> stepsPerSecond() const;
  /// Of one step; of the first submission if there is no other, 0 if there is none.
  [[nodiscard]] double medianSeconds() const;

 private:
  double first_ = 0;  ///< seconds of a step of the first submission
  bool begun_ = false;
  std::vector<double> seconds_;  ///< of each later step
};

}  // namespace lockstep::experiment
