// SPDX-License-Identifier: Apache-2.0
// The bounds prover and the loop analyses against the reference, which looks at every access and counts every round.
// LOCKSTEP_PROVER_KERNELS says how many kernels are made; ./dev nightly makes a million.
#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <random>

#include "backends/reference/reference.h"
#include "ir/kernel/count_rounds.h"
#include "ir/kernel/guard_accesses.h"
#include "ir/kernel/loop_ends.h"
#include "ir/kernel/loop_rounds.h"
#include "tests/backends/conformance.h"
#include "tests/prover/random_kernel.h"

namespace lockstep::prover {
namespace {

using kernel::Module;
using Choices = std::vector<uint32_t>;
using Words = conformance::Words;

constexpr uint32_t kSubgroup = 4;
constexpr uint64_t kLongest = 3000;  // rounds that are worth waiting for

size_t kernels() {
  const char* wish = std::getenv("LOCKSTEP_PROVER_KERNELS");
  if (wish != nullptr) return std::strtoull(wish, nullptr, 10);
#ifdef LOCKSTEP_SANITIZED
  constexpr size_t kSome = 1'000;  // they take ten times as long
#else
  constexpr size_t kSome = 10'000;
#endif
  return std::getenv("LOCKSTEP_NIGHTLY") == nullptr ? kSome : 1'000'000;
}

Choices choicesOf(uint64_t seed) {
  std::mt19937_64 random(seed);
  Choices choices(20 + random() % 300);
  for (uint32_t& choice : choices) choice = static_cast<uint32_t>(random());
  return choices;
}

Backend& reference() {
  static const std::unique_ptr<Backend> backend =
      makeReference({.max_threads = 1, .subgroup_size = kSubgroup, .loop_budget = 20 * kLongest * 8});
  return *backend;
}

/// What a run of the kernel says is wrong with what is known of it; empty: nothing.
std::string complaint(const Module& module, uint32_t seed) {
  const Module guarded = kernel::guardAccesses(module, kernel::OutOfBounds::Clamp);
  const Words inputs = makeInputs(seed), outputs(kOutputs);
  const auto run = conformance::runKernel(reference(), guarded, {inputs, outputs}, {1, 1, 1});
  const std::string code = run.ok() ? "" : run.diagnostics().front().code;
  if (code == "reference.out_of_bounds") return "out of bounds: " + toString(run.diagnostics());
  const uint64_t bound = kernel::loopRounds(module, *module.entryPoint()).most;
  if (bound > kLongest) return "";
  if (code == "reference.endless_loop") return fmt::format("endless, with a bound of {} rounds", bound);
  kernel::CountedRounds counted = kernel::countRounds(guarded, {.most = static_cast<uint32_t>(bound) + 1, .lanes = kSubgroup});
  std::vector<Words> buffers{inputs, outputs};
  while (buffers.size() < counted.binding) buffers.emplace_back(1);
  buffers.emplace_back(1);
  const auto again = conformance::runKernel(reference(), counted.module, buffers, {1, 1, 1});
  if (!again.ok()) return "counted: " + toString(again.diagnostics());
  return again->back()[0] == 0 ? "" : fmt::format("more rounds than the bound of {}", bound);
}

TEST(Prover, nothing_is_out_of_bounds_and_no_bound_is_too_low) {
  const size_t count = kernels();
  size_t valid = 0, bounded = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const Choices choices = choicesOf(seed);
    const Module module = makeKernel(choices);
    if (!kernel::validate(module).ok()) continue;
    ++valid;
    bounded += kernel::loopRounds(module, *module.entryPoint()).most <= kLongest;
    if (complaint(module, static_cast<uint32_t>(seed)).empty()) continue;
    const Module small = makeKernel(smallest(choices, [&](const Choices& each) {
      const Module less = makeKernel(each);
      return kernel::validate(less).ok() && !complaint(less, static_cast<uint32_t>(seed)).empty();
    }));
    ADD_FAILURE() << "seed " << seed << ": " << complaint(small, static_cast<uint32_t>(seed)) << "\n" << kernel::print(small);
    return;
  }
  RecordProperty("valid", static_cast<int>(valid));
  // A generator that makes nothing of interest proves nothing.
  EXPECT_GT(valid, count * 9 / 10);
  EXPECT_GT(bounded, count / 10);
}

}  // namespace
}  // namespace lockstep::prover
