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
#include "ir/graph/builder.h"

namespace lockstep::bench {

/// The sum of its commands' times, without transfers: the median over half a second of steps, each after a load that keeps the clocks up. A
/// card whose host compiled for a while may need seconds until they are, so it is measured again until the time stops falling. Commands
/// with `left_out` in their label do not count; where `only` is not empty, those with it in their label do.
inline double commandSeconds(detail::Session& session, const std::vector<std::byte>& input,
                             const std::vector<std::string_view>& left_out = {}, std::string_view only = {}) {
  constexpr int kMostRounds = 8;
  constexpr double kStillFalling = 0.98;
  constexpr auto kRound = std::chrono::milliseconds(500), kLoad = std::chrono::milliseconds(5);
  // The device idles while the host asks for a step's times, so each such step comes after a load of some milliseconds.
  size_t steps = 8;
  const auto load = [&] {
    const auto begin = std::chrono::steady_clock::now();
    (void)session.wait(session.submit(std::vector(steps, input)).orThrow()).orThrow();
    if (std::chrono::steady_clock::now() - begin < kLoad && steps < 512) steps *= 2;
  };
  const auto once = [&] {
    double seconds = 0;
    for (const auto& command : session.time(input)) {
      const auto has = [&](std::string_view part) { return command.label.find(part) != std::string::npos; };
      if (has(only) && std::ranges::none_of(left_out, has)) seconds += command.seconds;
    }
    return seconds;
  };
  const auto median = [&] {
    const auto end = std::chrono::steady_clock::now() + kRound;
    std::vector<double> times;
    do {
      load();
      times.push_back(once());
    } while (std::chrono::steady_clock::now() < end);
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

/// What a program gives to the host in place of a large tensor: one element, by a command labelled "copy".
inline graph::ValueId firstElement(graph::Builder& b, graph::ValueId value) {
  value = b.make("barrier", {value});
  for (size_t axis = 0; axis < b.shapeOf(value).rank(); ++axis) {
    value = b.make("narrow", {value}, {{"axis", static_cast<int64_t>(axis)}, {"start", int64_t{0}}, {"length", int64_t{1}}});
  }
  return value;
}

}  // namespace lockstep::bench
