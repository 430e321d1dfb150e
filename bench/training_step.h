// SPDX-License-Identifier: Apache-2.0
// Time and planned memory of a training step, on one line: what the programs about models share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "frontend/lockstep.h"
#include "tools/profile/profile_text.h"

namespace bench {

constexpr auto kWarmUp = std::chrono::milliseconds(500);  // clocks that fell while nothing ran stay low for a while

/// The median over rounds of eight steps per submission, after half a second of them; on request also where the time goes.
template <class Batches>
void reportStep(ls::Trainer& trainer, const std::string& device, ls::Precision precision, const Batches& batch, int rounds,
                bool with_profile) {
  constexpr size_t kSteps = 8;
  const auto begin = std::chrono::steady_clock::now();
  do trainer.steps(kSteps, batch);
  while (std::chrono::steady_clock::now() - begin < kWarmUp);
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    trainer.steps(kSteps, batch);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kSteps);
  }
  std::ranges::sort(seconds);
  const ls::ProgramFacts facts = trainer.facts();
  fmt::print("{:12} {:5} {:8.2f} ms per step, {} MB planned, {} dispatches in {} levels\n", device, toString(precision.dtype),
             1e3 * seconds[seconds.size() / 2], facts.planned_bytes / 1000000, facts.dispatches, facts.levels);
  if (with_profile) {
    lockstep::tools::Profile profile = lockstep::tools::measureProfile(trainer, batch, 5);
    const lockstep::DeviceInfo info = lockstep::chooseDevice(device).orThrow().info;
    profile.sample = fmt::format("a step in {}", toString(precision.dtype));
    profile.device = device, profile.device_name = info.name, profile.driver = info.driver;
    fmt::print("{}\n", lockstep::tools::profileText(profile, {}));
  }
  std::fflush(stdout);
}

}  // namespace bench
