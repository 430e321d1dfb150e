// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "frontend/wgsl/syntax/source.h"

namespace lockstep::wgsl {
namespace {

struct LimitRow {
  Limit limit;
  std::string_view name;
  uint64_t portable;
  std::string_view what;  ///< "entry point 'main': <what> is 9, ..."
  std::string_view remedy;
};

constexpr std::array<LimitRow, kLimitCount> kLimits = {{
    {Limit::BindGroups, "maxBindGroups", 4, "the number of bind groups (highest group + 1)", "number the groups from 0 on"},
    {Limit::BindingsPerBindGroup, "maxBindingsPerBindGroup", 1000, "the number of bindings of a group (highest binding + 1)",
     "number the bindings from 0 on"},
    {Limit::StorageBuffersPerShaderStage, "maxStorageBuffersPerShaderStage", 8, "the number of storage buffers",
     "put arrays of one type into one buffer with offsets, or split the entry point"},
    {Limit::UniformBuffersPerShaderStage, "maxUniformBuffersPerShaderStage", 12, "the number of uniform buffers",
     "put them into one struct"},
    {Limit::StorageBufferBindingSize, "maxStorageBufferBindingSize", uint64_t{128} << 20u, "the smallest binding of a storage buffer",
     "split the buffer, or bind a part of it in each of several dispatches"},
    {Limit::UniformBufferBindingSize, "maxUniformBufferBindingSize", uint64_t{64} << 10u, "the smallest binding of a uniform buffer",
     "use a read-only storage buffer"},
    {Limit::ImmediateSize, "maxImmediateSize", 64, "the size of immediate data", "use a uniform buffer"},
    {Limit::ComputeWorkgroupStorageSize, "maxComputeWorkgroupStorageSize", 16384, "the size of workgroup memory", "use smaller tiles"},
    {Limit::ComputeInvocationsPerWorkgroup, "maxComputeInvocationsPerWorkgroup", 256, "the number of invocations of a workgroup",
     "use smaller workgroups and more of them"},
    {Limit::ComputeWorkgroupSizeX, "maxComputeWorkgroupSizeX", 256, "the workgroup size in x", "use smaller workgroups and more of them"},
    {Limit::ComputeWorkgroupSizeY, "maxComputeWorkgroupSizeY", 256, "the workgroup size in y", "use smaller workgroups and more of them"},
    {Limit::ComputeWorkgroupSizeZ, "maxComputeWorkgroupSizeZ", 64, "the workgroup size in z", "use smaller workgroups and more of them"},
    {Limit::ComputeWorkgroupsPerDimension, "maxComputeWorkgroupsPerDimension", 65535,
     "the largest number of workgroups of a dispatch in one dimension",
     "dispatch in two dimensions, or let each invocation take several elements"},
}};

const LimitRow& rowOf(Limit limit) { return kLimits[static_cast<size_t>(limit)]; }

/// The largest value of each limit that is not about a single buffer, with the place that has it.
class Largest {
 public:
  void raise(Limit limit, uint64_t value, const Location& where) {
    Need& need = needs_[static_cast<size_t>(limit)];
    if (value > need.value) need = {.limit = limit, .value = value, .where = where};
  }
  void count(Limit limit, const Location& where) { raise(limit, needs_[static_cast<size_t>(limit)].value + 1, where); }
  [[nodiscard]] std::vector<Need> take() const {
    std::vector<Need> list;
    std::ranges::copy_if(needs_, std::back_inserter(list), [](const Need& need) { return need.value > 0; });
    return list;
  }

 private:
  std::array<Need, kLimitCount> needs_{};
};

}  // namespace

std::string_view toString(Limit limit) { return rowOf(limit).name; }

LimitSet portableLimits() {
  LimitSet set{.name = "portable", .maxima = {}};
  for (const LimitRow& row : kLimits) set.maxima[static_cast<size_t>(row.limit)] = row.portable;
  return set;
}

std::vector<Need> needsOf(const Reflection& reflection, const ReflectedEntryPoint& entry) {
  Largest largest;
  for (const size_t position : entry.bindings) {
    const ReflectedBinding& binding = reflection.bindings[position];
    const bool uniform = binding.space == kernel::AddressSpace::Uniform;
    largest.raise(Limit::BindGroups, uint64_t{binding.group} + 1, binding.where);
    largest.raise(Limit::BindingsPerBindGroup, uint64_t{binding.binding} + 1, binding.where);
    largest.count(uniform ? Limit::UniformBuffersPerShaderStage : Limit::StorageBuffersPerShaderStage, binding.where);
    largest.raise(uniform ? Limit::UniformBufferBindingSize : Limit::StorageBufferBindingSize, binding.size, binding.where);
  }
  if (entry.immediate) {
    const ReflectedBinding& variable = reflection.immediates[*entry.immediate];
    largest.raise(Limit::ImmediateSize, variable.size, variable.where);
  }
  if (entry.workgroup_bytes) largest.raise(Limit::ComputeWorkgroupStorageSize, *entry.workgroup_bytes, entry.where);
  if (entry.workgroup_size) {
    const auto& [x, y, z] = *entry.workgroup_size;
    // Each is below 2^31, so that two of them cannot overflow.
    const uint64_t plane = uint64_t{x} * y, most = std::numeric_limits<uint64_t>::max();
    largest.raise(Limit::ComputeInvocationsPerWorkgroup, plane > most / z ? most : plane * z, entry.where);
    largest.raise(Limit::ComputeWorkgroupSizeX, x, entry.where);
    largest.raise(Limit::ComputeWorkgroupSizeY, y, entry.where);
    largest.raise(Limit::ComputeWorkgroupSizeZ, z, entry.where);
  }
  return largest.take();
}

namespace {

Diagnostic beyond(const ReflectedEntryPoint& entry, const Need& need, const LimitSet& limits) {
  const LimitRow& row = rowOf(need.limit);
  return {.code = kLimit,
          .message = fmt::format("entry point '{}': {} is {}, but {} allows at most {} ({})", entry.name, row.what, need.value, limits.name,
                                 limits[need.limit], row.name),
          .where = need.where,
          .notes = {},
          .remedy = std::string(row.remedy)};
}

}  // namespace

std::vector<Diagnostic> checkLimits(const Reflection& reflection, const LimitSet& limits) {
  std::vector<Diagnostic> diagnostics;
  for (const ReflectedEntryPoint& entry : reflection.entry_points) {
    for (const Need& need : needsOf(reflection, entry)) {
      if (need.value > limits[need.limit]) diagnostics.push_back(beyond(entry, need, limits));
    }
  }
  return diagnostics;
}

std::vector<Diagnostic> checkDispatch(const Reflection& reflection, const std::array<uint32_t, 3>& groups, const LimitSet& limits) {
  std::vector<Diagnostic> diagnostics;
  for (const ReflectedEntryPoint& entry : reflection.entry_points) {
    const Need need{.limit = Limit::ComputeWorkgroupsPerDimension, .value = *std::ranges::max_element(groups), .where = entry.where};
    if (need.value > limits[need.limit]) diagnostics.push_back(beyond(entry, need, limits));
  }
  return diagnostics;
}

std::vector<Diagnostic> checkSharedGroups(const Reflection& reflection) {
  std::vector<Diagnostic> diagnostics;
  std::map<uint32_t, std::pair<const ReflectedEntryPoint*, std::set<uint32_t>>> first;  // by group
  for (const ReflectedEntryPoint& entry : reflection.entry_points) {
    std::map<uint32_t, std::set<uint32_t>> groups;
    for (const size_t position : entry.bindings) groups[reflection.bindings[position].group].insert(reflection.bindings[position].binding);
    for (const auto& [group, bindings] : groups) {
      const auto [known, is_new] = first.try_emplace(group, &entry, bindings);
      const auto& [other, others] = known->second;
      if (is_new || others == bindings) continue;
      std::vector<uint32_t> differ;
      std::ranges::set_symmetric_difference(others, bindings, std::back_inserter(differ));
      diagnostics.push_back(
          {.code = kLayout,
           .message = fmt::format("entry points '{}' and '{}' use different bindings of group {} (only one of them uses {}): with layouts "
                                  "'auto' one bind group does not fit both",
                                  other->name, entry.name, group, fmt::join(differ, ", ")),
           .where = entry.where,
           .notes = {{.message = "the other entry point is here", .where = other->where}},
           .remedy = "make an explicit bind group layout for both"});
    }
  }
  return diagnostics;
}

std::vector<Diagnostic> checkHeadroom(const Reflection& reflection, const LimitSet& limits) {
  std::vector<Diagnostic> diagnostics;
  for (const ReflectedEntryPoint& entry : reflection.entry_points) {
    for (const Need& need : needsOf(reflection, entry)) {
      if (need.limit != Limit::StorageBuffersPerShaderStage || need.value != limits[need.limit]) continue;
      diagnostics.push_back({.code = kLimit,
                             .message = fmt::format("entry point '{}' uses all {} storage buffers that {} allows ({})", entry.name,
                                                    need.value, limits.name, toString(need.limit)),
                             .where = need.where,
                             .notes = {},
                             .remedy = "put arrays of one type into one buffer before another one is needed"});
    }
  }
  return diagnostics;
}

}  // namespace lockstep::wgsl
