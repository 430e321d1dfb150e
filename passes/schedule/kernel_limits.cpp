// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/kernel_limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::passes {

namespace {

struct Need {
  std::string_view what;
  uint64_t needed, allowed;
  std::string_view remedy;
};

uint64_t workgroupBytes(const kernel::Module& module) {
  uint64_t bytes = 0;
  for (const kernel::GlobalVariable& global : module.globals) {
    if (global.space == kernel::AddressSpace::Workgroup) bytes += (module.types.sizeOf(global.type) + 15) / 16 * 16;
  }
  return bytes;
}

}  // namespace

Status checkKernelLimits(const kernel::Module& module, const std::array<uint32_t, 3>& groups, const program::DeviceProfile& profile,
                         const Location& call) {
  const std::array<uint32_t, 3>& size = *module.entryPoint()->workgroup_size;
  const auto bindings = static_cast<uint64_t>(
      std::ranges::count_if(module.globals, [](const kernel::GlobalVariable& global) { return kernel::isBound(global.space); }));
  const uint64_t invocations = uint64_t{std::min(size[0], 1u << 16)} * std::min(size[1], 1u << 16) * std::min(size[2], 1u << 16);
  constexpr std::string_view kSmaller = "use a smaller @workgroup_size",
                             kFewer = "let each workgroup do more, or spread them over x, y and z";
  const Need needs[] = {
      {"invocations in a workgroup", invocations, profile.max_workgroup_invocations, kSmaller},
      {"invocations of a workgroup in x", size[0], profile.max_workgroup_size_x, kSmaller},
      {"invocations of a workgroup in y", size[1], profile.max_workgroup_size_y, kSmaller},
      {"invocations of a workgroup in z", size[2], profile.max_workgroup_size_z, kSmaller},
      {"bytes of workgroup memory", workgroupBytes(module), profile.max_workgroup_bytes, "use smaller var<workgroup> variables"},
      {"operands and results", bindings, profile.max_storage_buffers, "join operands with concat, or split the kernel"},
      {"workgroups in x", groups[0], profile.max_groups_per_dimension, kFewer},
      {"workgroups in y", groups[1], profile.max_groups_per_dimension, kFewer},
      {"workgroups in z", groups[2], profile.max_groups_per_dimension, kFewer},
  };
  const Need* beyond = std::ranges::find_if(needs, [](const Need& need) { return need.needed > need.allowed; });
  if (beyond == std::end(needs)) return Success{};
  return fail(
      "kernel.limit",
      fmt::format("kernel '{}' has {} {}, but '{}' allows {}", module.name, beyond->needed, beyond->what, profile.name, beyond->allowed),
      call, std::string(beyond->remedy));
}

}  // namespace lockstep::passes
