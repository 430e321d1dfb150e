// SPDX-License-Identifier: Apache-2.0
// Teaches a small transformer to add two-digit numbers, and checks it on sums that it never saw.
#include <fmt/core.h>

#include <cstdio>

#include "examples/models/addition.h"

using namespace ls::examples;

int main() {
  constexpr uint64_t kSeed = 36, kChunk = 20, kSteps = 1200;
  auto trainer = compileAddition({.seed = kSeed});
  AdditionCheck check(trainer, kSeed);
  fmt::print("training {} parameters on {}\n", trainer.facts().parameters, trainer.facts().device_name);

  while (trainer.step_count() < kSteps) {
    uint64_t first = trainer.step_count() + 1;
    AdditionBatch batch;
    auto results = trainer.steps(kChunk, [&](size_t i) {
      batch = additionBatch(kSeed, first + i);
      return ls::Batch{{"tokens", batch.tokens}, {"targets", batch.targets}};
    });
    if (trainer.step_count() % 100 != 0) continue;
    auto score = check.run();
    fmt::print("step {} loss {:.4f}, exact sums: {:.0f} % trained, {:.0f} % held out\n", results.back().step, results.back().loss,
               100 * score.trained, 100 * score.held_out);
    std::fflush(stdout);
  }
}
