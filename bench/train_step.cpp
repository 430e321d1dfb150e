// SPDX-License-Identifier: Apache-2.0
// Time of a training step of the samples on each device: one step at a time, and many in one submission with two submissions in flight.
// usage: bench_train_step [--profile] [DEVICE...]   prints one line a sample and device; with --profile also the time of each command
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "examples/models/addition.h"
#include "examples/models/mlp.h"
#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

bool profiling = false;

/// The median over a few steps of each command's time, longest first.
void printProfile(ls::Trainer& trainer, const ls::Batch& batch) {
  std::vector<std::vector<double>> times;
  std::vector<std::string> labels;
  for (int round = 0; round < 9; ++round) {
    const auto commands = trainer.profile(batch).commands;
    times.resize(commands.size());
    labels.resize(commands.size());
    for (size_t i = 0; i < commands.size(); ++i) {
      labels[i] = commands[i].label;
      times[i].push_back(commands[i].seconds);
    }
  }
  std::vector<std::pair<double, size_t>> order;
  double total = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    order.emplace_back(median(times[i]), i);
    total += order.back().first;
  }
  std::sort(order.rbegin(), order.rend());
  fmt::print("  {} commands, {:.1f} us in all\n", order.size(), total * 1e6);
  for (auto [seconds, i] : order) fmt::print("  {:9.2f} us {:5.1f} %  #{:<3} {}\n", seconds * 1e6, 100 * seconds / total, i, labels[i]);
}

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
      "{:10} {:12} {:44} one a submission {:10.1f} us  {:3} a submission {:10.1f} us  {} dispatches, {} levels, {:.2f} MB, ready in {:.2f} "
      "s\n",
      name, facts.device, facts.device_name, median(single) * 1e6, k, median(together) * 1e6, facts.dispatches, facts.levels,
      static_cast<double>(facts.planned_bytes) / 1e6, ready);
  if (profiling) printProfile(trainer, batch(0));
  std::fflush(stdout);
}

void sine(const std::string& device) {
  auto start = Clock::now();
  auto trainer = ls::compile<ls::examples::Mlp>({
      .inputs = {{"x", ls::f32(256, 1)}, {"y", ls::f32(256, 1)}},
      .loss = [](const ls::examples::Mlp& model, const ls::Inputs& in) { return ls::mean(ls::square(model(in["x"]) - in["y"])); },
      .optimizer = ls::adam({.lr = 5e-3}),
      .seed = 42,
      .device = device,
      .make = [] { return std::make_unique<ls::examples::Mlp>(std::vector<int64_t>{1, 64, 64, 1}); },
  });
  double ready = since(start);
  std::vector<float> xs(256), ys(256);
  for (size_t i = 0; i < xs.size(); ++i) {
    xs[i] = -3.14f + 6.28f * static_cast<float>(i) / 256.0f;
    ys[i] = std::sin(xs[i]);
  }
  report("sine", trainer, ready, [&](size_t) { return ls::Batch{{"x", xs}, {"y", ys}}; });
}

void addition(const std::string& device) {
  auto start = Clock::now();
  auto trainer = ls::examples::compileAddition({.seed = 42, .device = device});
  double ready = since(start);
  ls::examples::AdditionBatch batch = ls::examples::additionBatch(42, 1);
  report("addition", trainer, ready, [&](size_t) { return ls::Batch{{"tokens", batch.tokens}, {"targets", batch.targets}}; });
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  if (!devices.empty() && devices.front() == "--profile") {
    profiling = true;
    devices.erase(devices.begin());
  }
  if (devices.empty()) devices = {"reference", "vulkan"};
  try {
    for (const std::string& device : devices) {
      sine(device);
      addition(device);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
