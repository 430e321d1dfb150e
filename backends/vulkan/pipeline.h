// SPDX-License-Identifier: Apache-2.0
// Kernels made ready: SPIR-V, layouts and pipelines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/context.h"
#include "ir/program/program.h"

namespace lockstep::vulkan {

/// One kernel; `bindings` storage buffers in set 0. A kernel whose loops the device may end early has one more than its dispatches: the
/// word that says so (kernel::countRounds).
struct KernelPipeline {
  size_t bindings = 0;
  bool counts_rounds = false;
  std::vector<Location> loops;  ///< what the word counts by
  SetLayout set_layout;
  PipelineLayout layout;
  Pipeline pipeline;
  std::string facts;  ///< of the driver, where they are collected
};

/// One for each kernel of the program; those that no dispatch uses stay empty.
Result<std::vector<KernelPipeline>> makePipelines(Context& context, const program::ValidProgram& program, uint64_t& counter);

}  // namespace lockstep::vulkan
