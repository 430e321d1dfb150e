// SPDX-License-Identifier: Apache-2.0
// What WebGPU limits: what the entry points of a module need, and what a device allows.
#pragma once

#include <array>

#include "frontend/wgsl/reflect.h"

namespace lockstep::wgsl {

/// In the order of the table in limits.cpp.
enum class Limit : uint8_t {
  BindGroups,
  BindingsPerBindGroup,
  StorageBuffersPerShaderStage,
  UniformBuffersPerShaderStage,
  StorageBufferBindingSize,
  UniformBufferBindingSize,
  ImmediateSize,
  ComputeWorkgroupStorageSize,
  ComputeInvocationsPerWorkgroup,
  ComputeWorkgroupSizeX,
  ComputeWorkgroupSizeY,
  ComputeWorkgroupSizeZ,
  ComputeWorkgroupsPerDimension,  ///< of a dispatch
};
inline constexpr size_t kLimitCount = 13;

/// Its name in WebGPU: "maxBindGroups".
std::string_view toString(Limit limit);

/// The largest allowed value of each limit.
struct LimitSet {
  std::string name;  ///< "portable"
  std::array<uint64_t, kLimitCount> maxima;
  [[nodiscard]] uint64_t operator[](Limit limit) const { return maxima[static_cast<size_t>(limit)]; }
};
/// What every WebGPU device allows, called "portable".
LimitSet portableLimits();

struct Need {
  Limit limit;
  uint64_t value = 0;
  Location where;  ///< the variable or entry point that it is about
};
/// One for each limit and entry point (for each buffer where the limit is about one). Sizes that depend on overrides without a value are
/// left out.
std::vector<Need> needsOf(const Reflection& reflection, const ReflectedEntryPoint& entry);

/// A diagnostic wgsl.limit for each need that is above its limit.
std::vector<Diagnostic> checkLimits(const Reflection& reflection, const LimitSet& limits);
/// The same for a dispatch of so many workgroups.
std::vector<Diagnostic> checkDispatch(const Reflection& reflection, const std::array<uint32_t, 3>& groups, const LimitSet& limits);
/// A diagnostic wgsl.layout for each entry point that uses other bindings of a group than the first one that uses the group: layouts that
/// are made of the entry points ("auto") do not take one bind group for both.
std::vector<Diagnostic> checkSharedGroups(const Reflection& reflection);
/// A diagnostic for each entry point that needs exactly as many storage buffers as there may be: there is no room for another one.
std::vector<Diagnostic> checkHeadroom(const Reflection& reflection, const LimitSet& limits);

}  // namespace lockstep::wgsl
