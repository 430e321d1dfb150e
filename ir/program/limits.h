// SPDX-License-Identifier: Apache-2.0
// What kernels and dispatches take of the limits of a device. Whoever refuses a kernel reads this one table and words its own error.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/program/profile.h"

namespace lockstep::program {

struct LimitUse {
  std::string_view what;  ///< "invocations in a workgroup"
  uint64_t used = 0, allowed = 0;
  std::string_view remedy;  ///< for whoever wrote the kernel
  [[nodiscard]] bool exceeds() const { return used > allowed; }
};

/// Of a kernel with an entry point: its workgroup, its memory and its bindings.
std::vector<LimitUse> limitUses(const kernel::Module& module, const DeviceProfile& profile);
/// Of a dispatch with this many workgroups in x, y and z.
std::vector<LimitUse> limitUses(const std::array<uint32_t, 3>& groups, const DeviceProfile& profile);

/// The first one that exceeds its limit.
std::optional<LimitUse> firstExceeded(const std::vector<LimitUse>& uses);

}  // namespace lockstep::program
