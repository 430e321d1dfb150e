// SPDX-License-Identifier: Apache-2.0
// A kernel as SPIR-V, without a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep {

struct KernelSpirv {
  std::vector<uint32_t> words;
  std::string text;  ///< in the form of spirv-dis
};

/// SPIR-V 1.3 for any device with Vulkan 1.1; storage and uniform variables are storage buffers at their group (set) and binding. The
/// module has one entry point. `source_lines`: with the kernel's text and the line of each instruction, which debuggers show. Code
/// vulkan.build where the Vulkan backend was not built in.
Result<KernelSpirv> kernelSpirv(const kernel::ValidModule& module, bool source_lines = false);

}  // namespace lockstep
