// SPDX-License-Identifier: Apache-2.0
// Random kernels of one invocation on a Vulkan device: none fails, and nothing is written that may only be read. LOCKSTEP_PROVER_SEED is
// the first seed, LOCKSTEP_PROVER_KERNELS their number, LOCKSTEP_PROVER_LONGEST makes shorter ones; with LOCKSTEP_PROVER_TRACE each seed is
// written before it runs, which a driver that crashes leaves behind.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "backends/backend.h"
#include "backends/reference/reference.h"
#include "ir/kernel/guard_accesses.h"
#include "tests/backends/conformance.h"
#include "tests/prover/random_kernel.h"

namespace lockstep::prover {
namespace {

using conformance::Words;

size_t kernels() {
  const char* wish = std::getenv("LOCKSTEP_PROVER_KERNELS");
  if (wish != nullptr) return std::strtoull(wish, nullptr, 10);
  return std::getenv("LOCKSTEP_NIGHTLY") == nullptr ? 150 : 10'000;
}

/// Of the numbers that a kernel is made from, beyond 20: short kernels compile several times as fast.
size_t longest() {
  const char* wish = std::getenv("LOCKSTEP_PROVER_LONGEST");
  return wish == nullptr ? 300 : std::max<size_t>(1, std::strtoull(wish, nullptr, 10));
}

/// Null where there is no Vulkan device.
std::unique_ptr<Backend> vulkan() {
  const auto chosen = chooseDevice("vulkan");
  if (!chosen.ok()) return nullptr;
  return openDevice(chosen->info).orThrow();
}

TEST(Prover, kernels_run_on_devices_and_write_where_they_may) {
  const std::unique_ptr<Backend> device = vulkan();
  if (device == nullptr) GTEST_SKIP() << "there is no Vulkan device";
  const std::unique_ptr<Backend> reference = makeReference({.loop_budget = 100'000});
  const char* first = std::getenv("LOCKSTEP_PROVER_SEED");
  const bool trace = std::getenv("LOCKSTEP_PROVER_TRACE") != nullptr;
  size_t ran = 0, answered = 0, agreed = 0;
  for (uint64_t seed = first == nullptr ? 1 : std::strtoull(first, nullptr, 10); ran < kernels(); ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> choices(20 + random() % longest());
    for (uint32_t& choice : choices) choice = static_cast<uint32_t>(random());
    const kernel::Module module = makeKernel(choices);
    // Invocations of one workgroup race for the same elements.
    if ((*module.entryPoint()->workgroup_size)[0] != 1 || !kernel::validate(module).ok()) continue;
    const kernel::Module guarded = kernel::guardAccesses(module, kernel::OutOfBounds::Clamp);
    const std::vector<Words> buffers{makeInputs(static_cast<uint32_t>(seed)), Words(kOutputs)};
    const auto wanted = conformance::runKernel(*reference, guarded, buffers, {1, 1, 1});
    if (!wanted.ok()) continue;  // it is endless
    ++ran;
    if (trace) std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
    // The backend guards by itself.
    const auto got = conformance::runKernel(*device, module, buffers, {1, 1, 1});
    // A driver that ends loops silently: more rounds than it makes are an error.
    if (!got.ok() && got.diagnostics().front().code == "device.loop_limit") continue;
    ++answered;
    ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << toString(got.diagnostics()) << kernel::print(module);
    EXPECT_EQ(got->front(), buffers.front()) << "seed " << seed;
    agreed += *got == *wanted;
  }
  // Not all: drivers compute strange loops wrongly. Mesa 22.3 does where an exit's arm may `continue`, where a signed counter steps across
  // the wrap, and where a switch has an endless loop in a case that is not taken; SwiftShader does in about one of 5000.
  EXPECT_GT(agreed, answered * 9 / 10);
  EXPECT_GT(answered, ran * 9 / 10);
}

}  // namespace
}  // namespace lockstep::prover
