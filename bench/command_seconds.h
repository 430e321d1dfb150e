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

/// The sum of its commands' times, without transfers: the median over about half a second of steps, after as long a load that brings the
/// clocks up. Commands with `left_out` in their label do not count.
inline double commandSeconds(detail::Session& session, const std::vector<std::byte>& input, std::string_view left_out = {}) {
  const auto once = [&] {
    double seconds = 0;
    for (const auto& command : session.time(input)) {
      if (left_out.empty() || command.label.find(left_out) == std::string::npos) seconds += command.seconds;
    }
    return seconds;
  };
  const auto loaded = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
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
}

}  // namespace lockstep::bench
