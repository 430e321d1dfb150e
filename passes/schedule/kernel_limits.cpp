// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/kernel_limits.h"

#include <fmt/format.h>

#include "ir/program/limits.h"

namespace lockstep::passes {

Status checkKernelLimits(const kernel::Module& module, const std::array<uint32_t, 3>& groups, const program::DeviceProfile& profile,
                         const Location& call) {
  auto beyond = program::firstExceeded(program::limitUses(module, profile));
  if (!beyond) beyond = program::firstExceeded(program::limitUses(groups, profile));
  if (!beyond) return Success{};
  return fail(
      "kernel.limit",
      fmt::format("kernel '{}' has {} {}, but '{}' allows {}", module.name, beyond->used, beyond->what, profile.name, beyond->allowed),
      call, std::string(beyond->remedy));
}

}  // namespace lockstep::passes
