// SPDX-License-Identifier: Apache-2.0
#include "passes/kernel/kernel_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/kernel/inline_calls.h"
#include "ir/support/nearest.h"
#include "passes/kernel/fold_constants.h"
#include "passes/kernel/fold_multiples.h"
#include "passes/kernel/forward_stores.h"
#include "passes/kernel/hoist_invariants.h"
#include "passes/kernel/join_bits.h"
#include "passes/kernel/load_early.h"
#include "passes/kernel/prove_bounds.h"
#include "passes/kernel/remove_dead.h"
#include "passes/kernel/share_common.h"
#include "passes/kernel/split_variables.h"
#include "passes/kernel/unroll_loops.h"

namespace lockstep::passes {

using kernel::Module;

namespace {

struct KernelPass {
  KernelPassInfo info;
  Module (*run)(Module);
};

constexpr std::array kPasses{
    KernelPass{{"inlineCalls", "calls become the bodies of their functions"}, kernel::inlineCalls},
    KernelPass{{"foldConstants", "integer and bool constants, exact identities, `if` on a constant"}, foldConstants},
    KernelPass{{"foldMultiples", "quotients and remainders of known multiples, by powers of two"}, foldMultiples},
    KernelPass{{"unrollLoops", "short loops with a known number of iterations"}, unrollLoops},
    KernelPass{{"forwardStores", "loads of variables whose value is known"}, forwardStores},
    KernelPass{{"splitVariables", "arrays that are indexed by constants become one variable per element"}, splitVariables},
    KernelPass{{"hoistInvariants", "pure operations move in front of loops that do not change them"}, hoistInvariants},
    KernelPass{{"shareCommon", "common subexpressions and loads of read-only memory"}, shareCommon},
    KernelPass{{"joinBits", "words whose parts were unpacked and are packed again"}, joinBits},
    KernelPass{{"proveBounds", "accesses that are known to be in range need no guard"}, proveBounds},
    KernelPass{{"loadEarly", "loads from storage come together, and in front of stores"}, loadEarly},
    KernelPass{{"removeDead", "results, variables and stores that nobody needs"}, removeDead},
};

/// Unrolling makes counters constants, so forwarding and folding run again after it. What they and removeDead leave of an inner loop may
/// be small enough that the outer loop unrolls too; splitVariables waits for that. What hoistInvariants moved out of one loop, shareCommon
/// merges with the same operation from another loop.
constexpr std::array<std::string_view, 18> kOrder{"inlineCalls",    "foldConstants", "unrollLoops",     "forwardStores", "foldConstants",
                                                  "removeDead",     "unrollLoops",   "forwardStores",   "foldMultiples", "foldConstants",
                                                  "splitVariables", "forwardStores", "hoistInvariants", "shareCommon",   "joinBits",
                                                  "proveBounds",    "loadEarly",     "removeDead"};

const KernelPass* find(std::string_view name) {
  const auto* row = std::find_if(kPasses.begin(), kPasses.end(), [&](const KernelPass& pass) { return pass.info.name == name; });
  return row == kPasses.end() ? nullptr : row;
}

}  // namespace

std::vector<KernelPassInfo> listKernelPasses() {
  std::vector<KernelPassInfo> out;
  for (const KernelPass& pass : kPasses) out.push_back(pass.info);
  return out;
}

Module optimizeKernel(Module module, const std::vector<std::string>& disabled) {
  for (std::string_view name : kOrder) {
    if (std::find(disabled.begin(), disabled.end(), name) == disabled.end()) module = find(name)->run(std::move(module));
  }
  return module;
}

Result<Module> runKernelPasses(Module module, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const KernelPass* pass = find(name);
    if (pass == nullptr) {
      std::string known = joinNames(kPasses, [](const KernelPass& row) { return row.info.name; });
      Failure failure = fail("pipeline.pass", fmt::format("there is no kernel pass '{}'", name), {}, "use one of " + known);
      failure.exit_code = ExitCode::Usage;
      return failure;
    }
    module = pass->run(std::move(module));
  }
  return module;
}

}  // namespace lockstep::passes
