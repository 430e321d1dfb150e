// SPDX-License-Identifier: Apache-2.0
// Whether kernels keep to the rounds of loops that a device runs (DeviceProfile::max_loop_iterations). The plans of choose_plan.h are made
// to; here it is counted in what became of them.
#pragma once

#include <set>
#include <string>

#include "ir/kernel/module.h"
#include "ir/program/program.h"

namespace lockstep::passes {

/// A bound of the rounds of a module that has not been through the kernel passes: as it is where that is at most `enough`, else as the
/// passes leave it.
uint64_t roundsOf(const kernel::Module& module, uint64_t enough);

/// The texts of the kernels that came with the model, as the kernel passes leave them. Nobody promises how often their loops run, so a
/// device with a limit counts.
std::set<std::string> textsOfUserKernels(const program::Program& scheduled);

/// Every other kernel of a compiled program is within the limit of its profile: an InternalError names the first that is not.
void checkLoopBudget(const program::Program& program, const std::set<std::string>& user_kernels);

}  // namespace lockstep::passes
