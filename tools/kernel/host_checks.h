// SPDX-License-Identifier: Apache-2.0
// What a host does wrong with a kernel before it runs: contracts of its text, and buffers that its arrays do not fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/wgsl/reflect.h"
#include "ir/support/finding.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep::tools {

/// Everything below that counts for a run of a kernel file. Without the sanitizer contracts that are not kept are the failure itself. Fails
/// with code wgsl.contract for a contract that cannot be read.
Result<std::vector<Finding>> findHostMistakes(const std::string& path, const std::map<std::string, double>& overrides, const KernelRun& run,
                                              const std::map<Slot, std::string>& files);

/// The contracts that the entry point of a run asks for and that its buffers and dispatch do not keep; codes contract.dispatch and
/// contract.require. `run` has all its bytes.
std::vector<Finding> findBrokenContracts(const wgsl::Reflection& reflection, const KernelRun& run);

/// Buffers with elements left over at their end, and .npy files (`files`, by slot) whose rows are no elements of the array that they are
/// bound to; code layout.stride. Places are those of the variables, where a reflection is at hand.
Result<std::vector<Finding>> findStrides(const wgsl::Reflection* reflection, const KernelRun& run,
                                         const std::map<Slot, std::string>& files);

}  // namespace lockstep::tools
