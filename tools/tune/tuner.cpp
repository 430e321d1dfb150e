// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

#include "passes/schedule/choose_plan.h"
#include "tools/tune/planned_kernel.h"

namespace lockstep::tools {
namespace {

/// Runs of each plan, and of each of the finalists in turn with the others.
constexpr int kFirstRounds = 3, kLastRounds = 4, kTurns = 5;
constexpr size_t kFinalists = 5;
/// What a device does before the first measurement: clocks drop when there is no work, and rise late.
constexpr std::chrono::milliseconds kWarmUp{200};
/// Two orders of the same sum differ by less: all results, relative L2, and the worst of them beside the largest result.
constexpr double kSameResults = 1e-3, kSameResult = 1e-2;
/// How much of the estimate's time a plan may take to be better than it: above this it is noise.
constexpr double kWorthwhile = 0.97;

bool areSame(const std::vector<double>& got, const std::vector<double>& want) {
  double square = 0, norm = 0, worst = 0, largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want[i])) {
      norm += want[i] * want[i];
      largest = std::max(largest, std::abs(want[i]));
    }
    if (got[i] == want[i] || (std::isnan(want[i]) && std::isnan(got[i]))) continue;
    const double difference = std::abs(got[i] - want[i]);
    if (!std::isfinite(difference)) return false;
    square += difference * difference;
    worst = std::max(worst, difference);
  }
  return std::sqrt(square) <= kSameResults * std::sqrt(norm) && worst <= kSameResult * largest;
}

struct Runner {
  program::Plan plan;
  PlannedKernel kernel;
  double seconds = 0;
};

Status runOnce(Result<PlannedKernel>& kernel) {
  if (!kernel.ok()) return kernel.failure();
  LS_CHECK(kernel->fastest(1));
  return Success{};
}

Status warmUp(Runner& runner) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kWarmUp) LS_CHECK(runner.kernel.fastest(1));
  return Success{};
}

/// The fastest run of each, in `turns` turns of `rounds` rounds.
Status measure(std::vector<Runner>& runners, int turns, int rounds) {
  for (Runner& runner : runners) runner.seconds = INFINITY;
  for (int turn = 0; turn < turns; ++turn)
    for (Runner& runner : runners) {
      LS_TRY(const double seconds, runner.kernel.fastest(rounds));
      runner.seconds = std::min(runner.seconds, seconds);
    }
  return Success{};
}

}  // namespace

Result<std::optional<TunedWork>> tuneKernel(Backend& backend, const program::SymbolicKernel& kernel) {
  backend.collectKernelFacts();
  const passes::PlanQuery query{kernel.body, program::kindOf(kernel.plan), backend.device().profile, true};
  const std::vector<program::Plan> plans = passes::candidatePlans(query);
  if (plans.size() < 2) return std::optional<TunedWork>();
  LS_TRY(passes::PlanChoice estimate, passes::choosePlan(query));
  TunedWork found{.work = passes::describeWork(query), .estimate = estimate.plan, .best = estimate.plan};
  LS_TRY(const KernelMemory memory, KernelMemory::make(backend, kernel.body));
  // First those that are measured to the end in any case: the estimate, and the plan that the kernel has.
  std::vector<passes::PlanChoice> choices{estimate};
  const auto add = [&](const program::Plan& plan) {
    if (std::ranges::find(choices, plan, &passes::PlanChoice::plan) != choices.end()) return;
    if (std::optional<passes::PlanChoice> choice = passes::choiceOf(plan, query)) choices.push_back(std::move(*choice));
  };
  add(kernel.plan);
  for (const program::Plan& plan : plans) add(plan);
  std::vector<Result<PlannedKernel>> kernels = PlannedKernel::makeAll(backend, kernel.body, choices, memory);
  std::vector<Runner> runners;
  KernelMemory::Contents want;
  for (size_t i = 0; i < choices.size(); ++i) {
    LS_CHECK(memory.clearResults());
    const Status ran = runOnce(kernels[i]);
    if (!ran.ok() && i == 0) return ran.failure();  // all others are compared with the estimate
    if (!ran.ok()) {
      ++found.refused;
      continue;
    }
    LS_TRY(KernelMemory::Contents got, memory.results());
    if (i == 0) want = std::move(got);
    if (i > 0 && got != want && !areSame(memory.numbers(got), memory.numbers(want))) {
      ++found.wrong;
      continue;
    }
    runners.push_back({.plan = choices[i].plan, .kernel = std::move(*kernels[i])});
  }
  found.measured = runners.size();
  // All are compiled by now: a device that waits for a compiler lowers its clocks.
  LS_CHECK(warmUp(runners.front()));
  LS_CHECK(measure(runners, 1, kFirstRounds));
  const auto faster = [](const Runner& a, const Runner& b) { return a.seconds < b.seconds; };
  const auto others =
      std::ranges::find_if(runners, [&](const Runner& runner) { return runner.plan != estimate.plan && runner.plan != kernel.plan; });
  std::ranges::sort(others, runners.end(), faster);
  runners.erase(runners.begin() + static_cast<std::ptrdiff_t>(std::min(runners.size(), kFinalists)), runners.end());
  LS_CHECK(measure(runners, kTurns, kLastRounds));
  found.estimate_seconds = runners.front().seconds;
  for (const Runner& runner : runners) found.finalists.push_back({runner.plan, runner.seconds, runner.kernel.facts()});
  std::ranges::stable_sort(found.finalists, {}, &TimedPlan::seconds);
  const Runner& best = *std::ranges::min_element(runners, faster);
  found.best_seconds = found.estimate_seconds;
  if (best.seconds < kWorthwhile * found.estimate_seconds) {
    found.best = best.plan;
    found.best_seconds = best.seconds;
  }
  return std::optional(std::move(found));
}

}  // namespace lockstep::tools
