// SPDX-License-Identifier: Apache-2.0
// Checks of a program against a device. Drivers do not check: an H100 answers too much workgroup memory with a lost device.
#pragma once

#include "backends/vulkan/device.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// Every dispatch within the device's limits, or "vulkan.limit" naming kernel, limit, value and maximum, or "vulkan.feature".
Status checkLimits(const program::ValidProgram& program, const DeviceFacts& facts);

/// Every subgroup operation and builtin of a kernel, against what the device has: vulkan.feature names the first that it lacks.
Status checkSubgroups(const std::string& name, const kernel::Module& module, const DeviceFacts& facts);

}  // namespace lockstep::vulkan
