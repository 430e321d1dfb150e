// SPDX-License-Identifier: Apache-2.0
#include "ir/program/limits.h"

#include <algorithm>

#include "ir/kernel/queries.h"

namespace lockstep::program {
namespace {

/// The product, without overflow: no device allows a size of 2^16.
uint64_t invocationsOf(const std::array<uint32_t, 3>& size) {
  uint64_t invocations = 1;
  for (const uint32_t extent : size) invocations *= std::min<uint64_t>(extent, 1u << 16);
  return invocations;
}

}  // namespace

std::vector<LimitUse> limitUses(const kernel::Module& module, const DeviceProfile& profile) {
  const std::array<uint32_t, 3>& size = *module.entryPoint()->workgroup_size;
  const auto bindings = std::ranges::count_if(module.globals, kernel::isBound, &kernel::GlobalVariable::space);
  constexpr std::string_view kSmaller = "use a smaller @workgroup_size";
  return {
      {"invocations in a workgroup", invocationsOf(size), profile.max_workgroup_invocations, kSmaller},
      {"invocations of a workgroup in x", size[0], profile.max_workgroup_size_x, kSmaller},
      {"invocations of a workgroup in y", size[1], profile.max_workgroup_size_y, kSmaller},
      {"invocations of a workgroup in z", size[2], profile.max_workgroup_size_z, kSmaller},
      {"bytes of workgroup memory", kernel::workgroupBytes(module), profile.max_workgroup_bytes, "use smaller var<workgroup> variables"},
      {"bytes of immediate data", kernel::immediateBytes(module), profile.max_immediate_bytes, "use a uniform buffer"},
      {"bindings", static_cast<uint64_t>(bindings), profile.max_storage_buffers, "join operands with concat, or split the kernel"},
  };
}

std::vector<LimitUse> limitUses(const std::array<uint32_t, 3>& groups, const DeviceProfile& profile) {
  constexpr std::string_view kFewer = "let each workgroup do more, or spread them over x, y and z";
  return {
      {"workgroups in x", groups[0], profile.max_groups_per_dimension, kFewer},
      {"workgroups in y", groups[1], profile.max_groups_per_dimension, kFewer},
      {"workgroups in z", groups[2], profile.max_groups_per_dimension, kFewer},
  };
}

std::optional<LimitUse> firstExceeded(const std::vector<LimitUse>& uses) {
  const auto found = std::ranges::find_if(uses, &LimitUse::exceeds);
  return found == uses.end() ? std::nullopt : std::optional(*found);
}

}  // namespace lockstep::program
