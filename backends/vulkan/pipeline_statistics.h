// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/vulkan/context.h"

namespace lockstep::vulkan {

/// Whether LOCKSTEP_PIPELINE_STATISTICS=1 asks for what the driver made of each kernel.
bool wantsPipelineStatistics();

/// Registers, workgroup memory and whatever else the driver tells of a pipeline that was made with
/// VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR: "Register Count 96, Stack Size 0". Empty where it tells nothing.
std::string pipelineStatistics(const Context& context, VkPipeline pipeline);

}  // namespace lockstep::vulkan
