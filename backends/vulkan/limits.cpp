// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "ir/kernel/spread_matrices.h"
#include "ir/program/limits.h"

namespace lockstep::vulkan {

namespace {

using program::LimitUse;

Status checkUses(std::string_view kernel, const std::vector<LimitUse>& uses, const DeviceFacts& facts) {
  const std::optional<LimitUse> beyond = program::firstExceeded(uses);
  if (!beyond) return Success{};
  return fail(
      "vulkan.limit",
      fmt::format("kernel \"{}\" has {} {}, but {} allows {}", kernel, beyond->used, beyond->what, facts.info.name, beyond->allowed), {},
      fmt::format("compile the program for the profile of this device ({})", facts.info.profile.name));
}

/// The storage buffers of one kernel. The profile has a smaller number: kernels that Lockstep writes need no more.
uint32_t mostStorageBuffers(const VkPhysicalDeviceLimits& limits) {
  return std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers, limits.maxPerStageResources});
}

constexpr std::array<std::string_view, 8> kSubgroupFeatures{"basic",     "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative",
                                                            "clustered", "quad"};

/// All invocations of a subgroup hold a matrix together, so subgroups are full and have a known size.
Status checkMatrices(const std::string& name, const kernel::Module& module, const DeviceFacts& facts) {
  if (!kernel::hasSubgroupMatrices(module)) return Success{};
  const program::DeviceProfile& profile = facts.info.profile;
  if (!profile.fixed_subgroups) {
    return fail("vulkan.feature",
                fmt::format("kernel \"{}\" has subgroup matrices, and subgroups of {} have no fixed size", name, facts.info.name));
  }
  const std::array<uint32_t, 3> size = *module.entryPoint()->workgroup_size;
  if (uint64_t{size[0]} * size[1] * size[2] % profile.subgroup_size == 0) return Success{};
  return fail(
      "vulkan.feature",
      fmt::format("kernel \"{}\" has subgroup matrices, and its workgroup of {} x {} x {} is not a multiple of the subgroup size {}", name,
                  size[0], size[1], size[2], profile.subgroup_size),
      {}, "make the workgroup a multiple of the subgroup size");
}

Status checkKernel(const std::string& name, const kernel::Module& module, const DeviceFacts& facts) {
  if (module.entryPoint() == nullptr) return fail("vulkan.entry_point", fmt::format("kernel \"{}\" has no entry point", name));
  program::DeviceProfile profile = facts.info.profile;
  profile.max_storage_buffers = mostStorageBuffers(facts.properties.limits);
  LS_CHECK(checkUses(name, program::limitUses(module, profile), facts));
  bool wants_f16 = std::count(module.capabilities.begin(), module.capabilities.end(), kernel::Capability::F16) != 0;
  if (wants_f16 && !facts.f16) return fail("vulkan.feature", fmt::format("kernel \"{}\" uses f16, which {} lacks", name, facts.info.name));
  LS_CHECK(checkSubgroups(name, module, facts));
  LS_CHECK(checkMatrices(name, module, facts));
  for (const kernel::GlobalVariable& global : module.globals) {
    const bool half = global.space == kernel::AddressSpace::Immediate && kernel::contains(module.types, global.type, kernel::Scalar::F16);
    if (half && !facts.immediate_f16) {
      return fail("vulkan.feature", fmt::format("kernel \"{}\" has f16 in immediate data, which {} lacks", name, facts.info.name));
    }
    if (kernel::isBound(global.space) && global.group != 0) {
      return fail("vulkan.group",
                  fmt::format("kernel \"{}\" binds {} in group {}, but a program binds group 0 only", name, global.name, global.group));
    }
  }
  return Success{};
}

/// lavapipe numbers the workgroups of a dispatch in 32 bits and leaves out what is beyond; a CPU would take hours for so many.
uint64_t mostWorkgroups(const DeviceFacts& facts) {
  return facts.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? UINT32_MAX : UINT64_MAX;
}

uint64_t workgroupsOf(const program::Dispatch& dispatch) {
  const uint64_t plane = uint64_t{dispatch.groups[0]} * dispatch.groups[1];
  return dispatch.groups[2] != 0 && plane > UINT64_MAX / dispatch.groups[2] ? UINT64_MAX : plane * dispatch.groups[2];
}

Status checkDispatch(const std::string& name, const program::Dispatch& dispatch, const program::Program& program,
                     const DeviceFacts& facts) {
  const VkPhysicalDeviceLimits& limits = facts.properties.limits;
  const uint32_t* groups = limits.maxComputeWorkGroupCount;
  // Each dimension with its own limit: the profile has the smallest of the three.
  std::vector<LimitUse> uses{
      {"workgroups in x", dispatch.groups[0], groups[0], {}},
      {"workgroups in y", dispatch.groups[1], groups[1], {}},
      {"workgroups in z", dispatch.groups[2], groups[2], {}},
      {"workgroups in all", workgroupsOf(dispatch), mostWorkgroups(facts), {}},
  };
  for (const program::Range& range : dispatch.bindings) {
    uses.push_back({"bytes in a binding", range.size, limits.maxStorageBufferRange, {}});
    uint64_t offset = program[range.buffer].offset + range.offset;
    if (offset % limits.minStorageBufferOffsetAlignment != 0) {
      return fail("vulkan.alignment", fmt::format("kernel \"{}\" binds offset {} of {}, which is no multiple of {}", name, offset,
                                                  program[range.buffer].name, limits.minStorageBufferOffsetAlignment));
    }
  }
  return checkUses(name, uses, facts);
}

}  // namespace

Status checkSubgroups(const std::string& name, const kernel::Module& module, const DeviceFacts& facts) {
  const auto lacks = [&](SubgroupFeature feature) { return (facts.subgroup_operations >> static_cast<uint32_t>(feature) & 1U) == 0; };
  const auto missing = [&](std::string_view what, std::string_view feature) {
    return fail("vulkan.feature",
                fmt::format("kernel \"{}\" uses {}, but {} lacks the {} operations of subgroups", name, what, facts.info.name, feature));
  };
  const program::DeviceProfile& profile = facts.info.profile;
  const uint32_t wanted = module.entryPoint()->subgroup_size;
  if (wanted != 0 && !(profile.fixed_subgroups && profile.subgroup_size == wanted)) {
    const std::string has =
        profile.fixed_subgroups ? fmt::format("has subgroups of {}", profile.subgroup_size) : "chooses their size itself";
    return fail("vulkan.feature",
                fmt::format("kernel \"{}\" needs subgroups of {} invocations, but {} {}", name, wanted, facts.info.name, has), {},
                fmt::format("compile the program for the profile of this device ({})", profile.name));
  }
  for (const kernel::Parameter& parameter : module.entryPoint()->parameters) {
    if (kernel::needsSubgroups(parameter.builtin) && lacks(SubgroupFeature::Basic)) {
      return missing(fmt::format("builtin {}", kernel::toString(parameter.builtin)), kSubgroupFeatures.front());
    }
  }
  for (const kernel::Instruction& instruction : module.instructions) {
    const kernel::OpInfo& op = kernel::info(instruction.op);
    if (op.group != kernel::OpGroup::Subgroup) continue;
    const SubgroupFeature feature = featureOf(instruction.op);
    if (lacks(feature)) return missing(op.text, kSubgroupFeatures[static_cast<size_t>(feature)]);
    if (module.types[instruction.type].scalar == kernel::Scalar::F16 && !facts.subgroup_f16) return missing(op.text, "f16");
  }
  return Success{};
}

Status checkLimits(const program::ValidProgram& program, const DeviceFacts& facts) {
  for (size_t i = 0; i < program->kernels.size(); ++i) LS_CHECK(checkKernel(program->kernels[i].name, *program.modules()[i], facts));
  for (const program::Command& command : program->commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    LS_CHECK(checkDispatch((*program)[dispatch->kernel].name, *dispatch, *program, facts));
  }
  return Success{};
}

}  // namespace lockstep::vulkan
