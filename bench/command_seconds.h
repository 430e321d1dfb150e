// SPDX-License-Identifier: Apache-2.0
// The time of a program's commands on its device.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/session.h"

namespace lockstep::bench {

/// The sum of its commands' times, without transfers: the median over about half a second of steps, after a load that brings the clocks up.
/// A card whose kernels were short or whose host compiled may need seconds for that, so it is measured again until the time stops falling.
/// Commands with `left_out` in their label do not count.
inline double commandSeconds(detail::Session& session, const std::vector<std::byte>& input, std::string_view left_out = {}) {
  constexpr int kMostRounds = 8;
  constexpr double kStillFalling = 0.98;
  const auto once = [&] {
    double seconds = 0;
    for (const auto& command : session.time(input)) {
      if (left_out.empty() || command.label.find(left_out) == std::string::npos) seconds += command.seconds;
    }
    return seconds;
  };
  const auto median = [&] {
    const auto loaded = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
    do {
      (void)session.wait(session.submit(std::vector(8, input)).orThrow()).orThrow();
    } while (std::chrono::steady_clock::now() < loaded);
    std::vector<double> times;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    do {
      times.push_back(once());
    } while (times.size() < 200 && std::chrono::steady_clock::now() < end);
    std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
    return times[times.size() / 2];
  };
  double least = median();
  for (int round = 1, steady = 0; round < kMostRounds && steady < 2; ++round) {
    const double next = median();
    steady = next < kStillFalling * least ? 0 : steady + 1;
    least = std::min(least, next);
  }
  return least;
}

}  // namespace lockstep::bench
