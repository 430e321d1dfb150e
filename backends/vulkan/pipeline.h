// SPDX-License-Identifier: Apache-2.0
// Kernels made ready: SPIR-V, layouts and pipelines.
#pragma once

#include <memory>
#include <vector>

#include "backends/vulkan/context.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// One kernel; `bindings` storage buffers in set 0.
struct KernelPipeline {
  size_t bindings = 0;
  SetLayout set_layout;
  PipelineLayout layout;
  Pipeline pipeline;
};

/// One for each kernel of the program; those that no dispatch uses stay empty.
Result<std::vector<KernelPipeline>> makePipelines(Context& context, const program::ValidProgram& program, uint64_t& counter);

}  // namespace lockstep::vulkan
