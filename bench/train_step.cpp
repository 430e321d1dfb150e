// SPDX-License-Identifier: Apache-2.0
// Time of a training step of the samples on each device: one step at a time, and many in one submission with two submissions in flight.
// usage: bench_train_step [--only SAMPLE] [--disable-pass NAME] [DEVICE...]   prints one line per sample and device
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "examples/recipes.h"
#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

template <class BatchFn>
void report(const std::string& name, ls::Trainer& trainer, double ready, const BatchFn& batch) {
  // Rounds last about half a second, whatever the device.
  trainer.step(batch(0));
  auto start = Clock::now();
  trainer.step(batch(0));
  const size_t per_round = static_cast<size_t>(std::clamp(0.25 / since(start), 2.0, 512.0));

  std::vector<double> single, together;
  for (int round = 0; round < 5; ++round) {
    start = Clock::now();
    for (size_t i = 0; i < per_round; ++i) trainer.step(batch(i));
    single.push_back(since(start) / static_cast<double>(per_round));
  }
  const size_t k = std::min<size_t>(per_round, 32);
  const size_t submissions = std::max<size_t>(2, per_round / k);
  trainer.steps(k, batch);
  for (int round = 0; round < 5; ++round) {
    start = Clock::now();
    uint64_t previous = trainer.enqueue(k, batch);
    for (size_t i = 1; i < submissions; ++i) {
      uint64_t next = trainer.enqueue(k, batch);
      trainer.wait(previous);
      previous = next;
    }
    trainer.wait(previous);
    together.push_back(since(start) / static_cast<double>(k * submissions));
  }
  const ls::ProgramFacts facts = trainer.facts();
  fmt::print(
      "{:14} {:12} {:44} one a submission {:10.1f} us  {:3} a submission {:10.1f} us  {} dispatches, {} levels, {:.2f} MB, ready in {:.2f} "
      "s\n",
      name, facts.device, facts.device_name, median(single) * 1e6, k, median(together) * 1e6, facts.dispatches, facts.levels,
      static_cast<double>(facts.planned_bytes) / 1e6, ready);
  std::fflush(stdout);
}

/// One batch again and again: games and data are not what is measured.
void sample(const ls::Recipe& recipe, const std::string& device, const std::vector<std::string>& disabled) {
  const auto start = Clock::now();
  const auto experiment = recipe.make({.steps = recipe.steps, .seed = recipe.seed, .device = device, .disable = disabled});
  const double ready = since(start);
  ls::Batch batch = experiment->batch(1);
  report(recipe.name, experiment->trainer(), ready, [&](size_t) { return batch; });
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  std::string only;
  std::vector<std::string> disabled;
  while (devices.size() >= 2 && (devices.front() == "--only" || devices.front() == "--disable-pass")) {
    if (devices.front() == "--only") {
      only = devices[1];
    } else {
      disabled.push_back(devices[1]);
    }
    devices.erase(devices.begin(), devices.begin() + 2);
  }
  if (devices.empty()) devices = {"reference", "vulkan"};
  try {
    for (const std::string& device : devices) {
      for (const ls::Recipe& recipe : ls::examples::recipes()) {
        if (only.empty() || only == recipe.name) sample(recipe, device, disabled);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
