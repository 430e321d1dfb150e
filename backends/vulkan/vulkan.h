// SPDX-License-Identifier: Apache-2.0
// The Vulkan backend: any device with Vulkan 1.1 and a compute queue. The loader is opened at run time, so a program that links this
// runs without Vulkan too and then sees no devices.
//
// Environment: LOCKSTEP_VALIDATION=1 turns the Khronos validation layer on (its errors become failures of code "vulkan.validation");
// LOCKSTEP_CACHE_DIR moves the pipeline cache (default $XDG_CACHE_HOME/lockstep or ~/.cache/lockstep; empty: none);
// LOCKSTEP_SPIRV_VAL=1 checks every module with spirv-val in release builds too.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"

namespace lockstep {

/// Every Vulkan device in the loader's order, "vulkan:0" first; devices that cannot be used say why. Fails with "vulkan.no_loader" or
/// "vulkan.<call>" (vkCreateInstance without any driver).
Result<std::vector<DeviceInfo>> listVulkanDevices();

/// Fails with "vulkan.no_loader", "vulkan.device_gone", "vulkan.unusable" or "vulkan.<call>".
Result<std::unique_ptr<Backend>> openVulkanDevice(const DeviceInfo& device);

}  // namespace lockstep
