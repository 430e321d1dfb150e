// SPDX-License-Identifier: Apache-2.0
// What it costs that a step looks for losses and gradients that are not finite: the addition transformer with and without each guard,
// rounds of all of them in turn, so that they see the same machine. usage: bench_guards [DEVICE...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "examples/models/addition.h"
#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Guard {
  const char* name;
  double clip;  ///< of the gradient norm; 0: none
  bool skip, check;
};
// Each guard stands behind the program that it is compared with.
constexpr Guard kGuards[] = {{"plain", 0, false, false},
                             {"finite loss", 0, true, false},
                             {"finite loss and gradients", 0, true, true},
                             {"clipped", 1, false, false},
                             {"clipped, finite loss and gradients", 1, true, false}};
constexpr size_t kComparedWith[] = {0, 0, 0, 3, 3};

ls::ModelTrainer<ls::examples::Transformer> compileWith(const Guard& guard, const std::string& device) {
  using namespace ls::examples;
  constexpr auto kBatch = static_cast<int64_t>(kAdditionBatch), kLength = static_cast<int64_t>(kAdditionLength);
  return ls::compile<Transformer>({
      .inputs = {{"tokens", ls::i32(kBatch, kLength)}, {"targets", ls::i32(kBatch, kLength)}},
      .loss = [](const Transformer& model, const ls::Inputs& in) { return additionLoss(model, in); },
      .optimizer = ls::adamw({.lr = 1e-3, .weight_decay = 0.01},
                             {.clip_grad_norm = guard.clip, .skip_non_finite = guard.skip, .check_gradients = guard.check}),
      .device = device,
  });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void report(const std::string& device) {
  const ls::examples::AdditionBatch data = ls::examples::additionBatch(42, 1);
  auto batch = [&](size_t) { return ls::Batch{{"tokens", data.tokens}, {"targets", data.targets}}; };
  std::vector<ls::ModelTrainer<ls::examples::Transformer>> trainers;
  for (const Guard& guard : kGuards) trainers.push_back(compileWith(guard, device));
  for (auto& trainer : trainers) trainer.steps(2, batch);
  auto start = Clock::now();
  trainers.front().steps(1, batch);
  const double one = std::chrono::duration<double>(Clock::now() - start).count();
  const auto steps = static_cast<size_t>(std::clamp(0.5 / one, 2.0, 256.0));

  constexpr int kRounds = 15;
  std::vector<std::vector<double>> seconds(trainers.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < trainers.size(); ++i) {
      start = Clock::now();
      trainers[i].steps(steps, batch);
      seconds[i].push_back(std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(steps));
    }
  }
  for (size_t i = 0; i < trainers.size(); ++i) {
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round)
      ratios.push_back(seconds[i][static_cast<size_t>(round)] / seconds[kComparedWith[i]][static_cast<size_t>(round)]);
    fmt::print("{:12} {:36} {:10.1f} us  x {:.3f} of '{}'  {} dispatches\n", trainers[i].facts().device, kGuards[i].name,
               median(seconds[i]) * 1e6, median(ratios), kGuards[kComparedWith[i]].name, trainers[i].facts().dispatches);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  if (devices.empty()) devices = {"reference", "vulkan"};
  try {
    for (const std::string& device : devices) report(device);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
