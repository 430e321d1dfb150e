// SPDX-License-Identifier: Apache-2.0
// Random kernels of one invocation on a Vulkan device: what ends on the reference gives the same numbers there, guards included.
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

size_t kernels() { return std::getenv("LOCKSTEP_NIGHTLY") == nullptr ? 150 : 10'000; }

/// Null where there is no Vulkan device.
std::unique_ptr<Backend> vulkan() {
  const auto chosen = chooseDevice("vulkan");
  if (!chosen.ok()) return nullptr;
  return openDevice(chosen->info).orThrow();
}

TEST(Prover, devices_agree_on_what_ends) {
  const std::unique_ptr<Backend> device = vulkan();
  if (device == nullptr) GTEST_SKIP() << "there is no Vulkan device";
  const std::unique_ptr<Backend> reference = makeReference({.loop_budget = 100'000});
  size_t compared = 0;
  const char* first = std::getenv("LOCKSTEP_PROVER_SEED");
  for (uint64_t seed = first == nullptr ? 1 : std::strtoull(first, nullptr, 10); compared < kernels(); ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint32_t> choices(20 + random() % 300);
    for (uint32_t& choice : choices) choice = static_cast<uint32_t>(random());
    const kernel::Module module = makeKernel(choices);
    if ((*module.entryPoint()->workgroup_size)[0] != 1 || !kernel::validate(module).ok()) continue;
    const kernel::Module guarded = kernel::guardAccesses(module, kernel::OutOfBounds::Clamp);
    const std::vector<Words> buffers{makeInputs(static_cast<uint32_t>(seed)), Words(kOutputs)};
    const auto wanted = conformance::runKernel(*reference, guarded, buffers, {1, 1, 1});
    if (!wanted.ok()) continue;  // it is endless
    ++compared;
    // The backend guards by itself.
    const auto got = conformance::runKernel(*device, module, buffers, {1, 1, 1});
    ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << toString(got.diagnostics()) << kernel::print(module);
    ASSERT_EQ(*got, *wanted) << "seed " << seed << "\n" << kernel::print(module);
  }
}

}  // namespace
}  // namespace lockstep::prover
