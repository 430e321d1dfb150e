// SPDX-License-Identifier: Apache-2.0
// Random kernels under the sanitizer: with all of its checks they give, bit for bit, what a plain run gives, and what the bounds prover
// takes for in bounds is. LOCKSTEP_PROVER_KERNELS says how many kernels are made; ./dev nightly makes 50 000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "ir/kernel/guard_accesses.h"
#include "ir/kernel/isolate_entry.h"
#include "tests/prover/random_kernel.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep::prover {
namespace {

using kernel::Module;
using Choices = std::vector<uint32_t>;

constexpr uint64_t kLoopBudget = 20'000;

size_t kernels() {
  const char* wish = std::getenv("LOCKSTEP_PROVER_KERNELS");
  if (wish != nullptr) return std::strtoull(wish, nullptr, 10);
  return std::getenv("LOCKSTEP_NIGHTLY") == nullptr ? 500 : 50'000;
}

Choices choicesOf(uint64_t seed) {
  std::mt19937_64 random(seed + 1'000'000'007);
  Choices choices(20 + random() % 300);
  for (uint32_t& choice : choices) choice = static_cast<uint32_t>(random());
  return choices;
}

tools::KernelRun runOf(const Module& module, uint32_t seed) {
  tools::KernelRun run{.module = module, .entry = {}, .device = "reference"};
  const std::vector<uint32_t> inputs = makeInputs(seed);
  Bytes bytes(inputs.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), inputs.data(), bytes.size());
  run.bytes[{0, 0}] = std::move(bytes);
  run.bytes[{0, 1}] = Bytes(kOutputs * sizeof(uint32_t));
  const Module used = kernel::isolateEntry(module, "main").orThrow();
  std::erase_if(run.bytes, [&](const auto& bound) { return tools::findVariable(used, bound.first) == nullptr; });
  return run;
}

tools::KernelRun watchedRunOf(const Module& module, uint32_t seed) {
  tools::KernelRun run = runOf(module, seed);
  run.sanitize = SanitizeOptions{.checks = {.wraps = true}, .loop_budget = kLoopBudget};
  return run;
}

bool has(const std::vector<Finding>& findings, std::string_view code) {
  return std::ranges::any_of(findings, [&](const Finding& finding) { return finding.diagnostic.code == code; });
}

struct Outcome {
  std::string complaint;  ///< empty: nothing is wrong
  bool compared = false;  ///< an endless loop is not
  bool faulty = false;
};

Outcome outcomeOf(const Module& module, uint32_t seed) {
  Outcome outcome;
  const auto watched = tools::runKernel(watchedRunOf(module, seed));
  if (!watched.ok()) return {.complaint = "the sanitizer refuses it: " + toString(watched.diagnostics())};
  outcome.faulty = !watched->findings.empty();
  if (!has(watched->findings, "loop.endless")) {
    const auto plain = tools::runKernel(runOf(module, seed));
    if (!plain.ok()) return {.complaint = "a plain run fails: " + toString(plain.diagnostics())};
    outcome.compared = true;
    if (watched->bytes != plain->bytes) outcome.complaint = "the sanitizer changes the result";
  }
  // What is not proved is clamped here, and the sanitizer looks at the rest.
  const auto guarded = tools::runKernel(watchedRunOf(kernel::guardAccesses(module, kernel::OutOfBounds::Clamp), seed));
  if (!guarded.ok()) return {.complaint = "the sanitizer refuses the guarded kernel: " + toString(guarded.diagnostics())};
  for (const Finding& finding : guarded->findings)
    if (finding.diagnostic.code == "memory.out_of_bounds") outcome.complaint = "proved, but: " + toString(finding);
  return outcome;
}

TEST(SanitizeRandom, results_are_those_of_a_plain_run) {
  const size_t count = kernels();
  size_t valid = 0, compared = 0, faulty = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const Choices choices = choicesOf(seed);
    const Module module = makeKernel(choices);
    if (!kernel::validate(module).ok()) continue;
    ++valid;
    const auto number = static_cast<uint32_t>(seed);
    const Outcome outcome = outcomeOf(module, number);
    compared += outcome.compared ? 1 : 0;
    faulty += outcome.faulty ? 1 : 0;
    if (outcome.complaint.empty()) continue;
    const Module small = makeKernel(smallest(choices, [&](const Choices& each) {
      const Module less = makeKernel(each);
      return kernel::validate(less).ok() && !outcomeOf(less, number).complaint.empty();
    }));
    ADD_FAILURE() << "seed " << seed << ": " << outcomeOf(small, number).complaint << "\n" << kernel::print(small);
    return;
  }
  // Kernels that are refused, never end or have no fault would show nothing.
  EXPECT_GT(valid, count * 9 / 10);
  EXPECT_GT(compared, count / 4);
  EXPECT_GT(faulty, count / 4);
}

}  // namespace
}  // namespace lockstep::prover
