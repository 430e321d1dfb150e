// SPDX-License-Identifier: Apache-2.0
// The table of samples.
#include <array>

#include "tools/sample_facts.h"

namespace lockstep::tools {

SampleFacts sampleFacts(const ProgramFacts& facts) {
  return {.device = facts.device,
          .device_name = facts.device_name,
          .device_reason = facts.device_reason,
          .dispatches_per_step = facts.dispatches,
          .levels_per_step = facts.levels,
          .distinct_kernels = facts.distinct_kernels,
          .planned_bytes = facts.planned_bytes,
          .parameters = facts.parameters};
}

std::vector<float> lossesOf(const std::vector<StepResult>& results) {
  std::vector<float> losses;
  for (const StepResult& result : results) {
    // A loss that is not finite is a loss; the loop reports it.
    if (!result.completed() && result.failure->kind != FailureKind::NonFinite) (void)result.or_throw();
    losses.push_back(result.loss);
  }
  return losses;
}

std::span<const Sample> allSamples() {
  static constexpr std::array kSamples{
      Sample{.name = "addition",
             .summary = "a transformer learns to add two-digit numbers",
             .default_steps = 1200,
             .default_seed = 36,
             .report_every = 20,
             .measure_every = 100,
             .chunk = 20,
             .make = makeAddition},
      Sample{.name = "sine",
             .summary = "a small network fits sin(x)",
             .default_steps = 1000,
             .report_every = 100,
             .measure_every = 0,
             .chunk = 20,
             .make = makeSine},
  };
  return kSamples;
}

}  // namespace lockstep::tools
