// SPDX-License-Identifier: Apache-2.0
// Time of a training step of a GRU, whose time steps are a loop on the device.
// usage: bench_gru [--short] [DEVICE...]   prints one line per shape and device
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  int64_t steps, batch, width;
};
constexpr Case kCases[] = {{32, 32, 64}, {128, 32, 64}, {512, 32, 64}, {512, 64, 256}, {4096, 32, 64}};
constexpr Case kShortCases[] = {{32, 32, 64}, {512, 32, 64}};

struct Gru : ls::Module {
  explicit Gru(int64_t width) : gru(*this, "gru", width, width) {}
  ls::nn::GRU gru;
};

ls::ModelTrainer<Gru> compileGru(const Case& c, const std::string& device) {
  return ls::compile<Gru>({.inputs = {{"x", ls::f32(c.batch, c.steps, c.width)}},
                           .loss = [](const Gru& model, const ls::Inputs& in) { return ls::mean(ls::square(model.gru(in["x"]).h)); },
                           .optimizer = ls::adam({.lr = 1e-3}),
                           .seed = 1,
                           .device = device,
                           .make = [width = c.width] { return std::make_unique<Gru>(width); }});
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

void report(const Case& c, const std::string& device) {
  const auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const auto start = Clock::now();
  auto trainer = compileGru(c, device);
  const double ready = since(start);
  std::vector<float> x(static_cast<size_t>(c.batch * c.steps * c.width));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  const auto batch = [&](size_t) { return ls::Batch{{"x", x}}; };
  trainer.steps(2, batch);
  std::vector<double> seconds;
  const auto begin = Clock::now();
  // Two steps share what a submission takes.
  while (seconds.size() < 5 || (seconds.size() < 100 && since(begin) < 1)) {
    const auto round = Clock::now();
    trainer.steps(2, batch);
    seconds.push_back(since(round) / 2);
  }
  const ls::ProgramFacts facts = trainer.facts();
  fmt::print("{:12} T {:>5}  B {:>3}  hidden {:>3}  {:>10.1f} us per step  {} dispatches, {} levels, {:.2f} MB, ready in {:.2f} s\n",
             facts.device, c.steps, c.batch, c.width, median(seconds) * 1e6, facts.dispatches, facts.levels,
             static_cast<double>(facts.planned_bytes) / 1e6, ready);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  const bool is_short = std::erase(devices, "--short") > 0;
  if (devices.empty()) devices = {"reference", "vulkan"};
  try {
    for (const std::string& device : devices) {
      for (const Case& c : is_short ? std::span<const Case>(kShortCases) : std::span<const Case>(kCases)) report(c, device);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
