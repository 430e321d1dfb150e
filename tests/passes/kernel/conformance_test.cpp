// SPDX-License-Identifier: Apache-2.0
// The conformance suite on the reference backend behind the kernel passes: kernels with known results, random structured programs among
// them, give the same bits after each pass alone and after all of them. Each pass must also leave its own result alone.
#include <gtest/gtest.h>

#include "backends/reference/reference.h"
#include "passes/kernel/kernel_pipeline.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

using kernel::Module;

/// Runs passes on every kernel of a program before the reference compiles it. No names: the whole table.
class OptimizingBackend : public Backend {
 public:
  explicit OptimizingBackend(std::vector<std::string> names) : names_(std::move(names)), inner_(makeReference()) {}
  [[nodiscard]] const DeviceInfo& device() const override { return inner_->device(); }
  Result<std::shared_ptr<Memory>> allocate(uint64_t bytes) override { return inner_->allocate(bytes); }

  Result<std::unique_ptr<Executable>> compile(const program::ValidProgram& program) override {
    program::Program changed = *program;
    for (program::Kernel& kernel : changed.kernels) {
      LS_TRY(kernel.code, optimize(std::get<Module>(kernel.code)));
    }
    LS_TRY(program::ValidProgram valid, program::validate(std::move(changed)));
    return inner_->compile(valid);
  }

 private:
  Result<Module> optimize(const Module& module) const {
    if (names_.empty()) return passes::optimizeKernel(module);
    LS_TRY(Module once, passes::runKernelPasses(module, names_));
    LS_TRY(Module twice, passes::runKernelPasses(once, {names_.back()}));
    if (canonical(once) != canonical(twice)) {
      return fail("test.idempotent", names_.back() + " changes its own result:\n" + print(once) + "\nbecomes\n" + print(twice));
    }
    return once;
  }

  std::vector<std::string> names_;
  std::unique_ptr<Backend> inner_;
};

BackendCase caseOf(const std::string& name, const std::vector<std::string>& names) {
  return {.name = name, .make = [names] { return std::make_unique<OptimizingBackend>(names); }, .exact = true};
}

std::vector<BackendCase> cases() {
  std::vector<BackendCase> out{caseOf("all", {})};
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) {
    std::string name(pass.name);
    out.push_back(caseOf(name, {name}));
    // Behind these a pass finds constants and whole functions to work on.
    out.push_back(
        caseOf(name + "_behind_others", {"inlineCalls", "unrollLoops", "forwardStores", "foldConstants", "splitVariables", name}));
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(kernel_passes, Conformance, testing::ValuesIn(cases()), caseName);

}  // namespace
}  // namespace lockstep::conformance
