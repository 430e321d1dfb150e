// SPDX-License-Identifier: Apache-2.0
// Kernels that the user wrote against the limits of a device. Those that Lockstep emits are made to fit.
#pragma once

#include <array>
#include <cstdint>

#include "ir/kernel/module.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

/// Error "kernel.limit" at `call` when the kernel, or the number of its workgroups, is beyond what the profile allows.
Status checkKernelLimits(const kernel::Module& module, const std::array<uint32_t, 3>& groups, const program::DeviceProfile& profile,
                         const Location& call);

}  // namespace lockstep::passes
