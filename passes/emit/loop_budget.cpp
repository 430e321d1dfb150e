// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/loop_budget.h"

#include <fmt/format.h>

#include "ir/kernel/loop_rounds.h"
#include "ir/support/result.h"
#include "passes/kernel/kernel_pipeline.h"

namespace lockstep::passes {

namespace {

uint64_t boundOf(const kernel::Module& module) { return kernel::loopRounds(module, *module.entryPoint()).most; }

}  // namespace

uint64_t roundsOf(const kernel::Module& module, uint64_t enough) {
  const uint64_t rounds = boundOf(module);
  return rounds <= enough ? rounds : boundOf(optimizeKernel(module));
}

std::set<std::string> textsOfUserKernels(const program::Program& scheduled) {
  std::set<std::string> texts;
  for (const program::Kernel& kernel : scheduled.kernels) {
    if (const auto* module = std::get_if<kernel::Module>(&kernel.code)) texts.insert(print(optimizeKernel(*module)));
  }
  return texts;
}

void checkLoopBudget(const program::Program& program, const std::set<std::string>& user_kernels) {
  const uint64_t limit = program.profile.max_loop_iterations;
  for (const program::Kernel& kernel : program.kernels) {
    const auto& module = std::get<kernel::Module>(kernel.code);
    const kernel::LoopRounds rounds = kernel::loopRounds(module, *module.entryPoint());
    if (limit == 0 || rounds.most <= limit || user_kernels.contains(print(module))) continue;
    const std::string count = rounds.unbounded.valid() ? "an unknown number of" : std::to_string(rounds.most);
    internalError(
        fmt::format("kernel '{}' was planned for a device that ends loops after {} rounds and makes {}", kernel.name, limit, count));
  }
}

}  // namespace lockstep::passes
