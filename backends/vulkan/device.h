// SPDX-License-Identifier: Apache-2.0
// What a physical device is and offers.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/vulkan/api.h"
#include "backends/vulkan/matrix_units.h"
#include "backends/vulkan/spirv.h"

namespace lockstep::vulkan {

/// The facts of one physical device that the backend uses.
struct DeviceFacts {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceMemoryProperties memory{};
  uint32_t version = 0;  ///< of the API, no higher than the instance's
  uint32_t queue_family = UINT32_MAX;
  uint32_t timestamp_bits = 0;  ///< of the queue; 0: no timestamps
  uint64_t max_allocation_bytes = 0;
  bool pipeline_statistics = false;  ///< VK_KHR_pipeline_executable_properties
  bool memory_budget = false;        ///< VK_EXT_memory_budget
  bool f16 = false;
  bool immediate_f16 = false;                      ///< storagePushConstant16
  VkSubgroupFeatureFlags subgroup_operations = 0;  ///< in compute shaders
  bool subgroup_f16 = false;                       ///< shaderSubgroupExtendedTypes: subgroup operations on f16 too
  MatrixUnits matrices = {};
  SpirvOptions spirv;
  std::vector<const char*> extensions;  ///< to enable
  DeviceInfo info;
};

/// Every physical device, in the loader's order.
Result<std::vector<DeviceFacts>> findDevices(const Instance& instance);

/// Bytes that can still be allocated in the largest device-local heap.
uint64_t freeDeviceBytes(const DeviceFacts& facts);
/// The largest device-local heap, or the largest one when none is.
uint32_t mainHeap(const VkPhysicalDeviceMemoryProperties& memory);

}  // namespace lockstep::vulkan
