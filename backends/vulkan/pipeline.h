// SPDX-License-Identifier: Apache-2.0
// Kernels made ready: SPIR-V, layouts and pipelines.
#pragma once

#include <memory>
#include <span>
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

/// What a program is run with, and how many objects of the device were made for it.
struct ProgramPipelines {
  std::vector<KernelPipeline> pipelines;  ///< one for each kernel; those that no dispatch uses stay empty
  uint64_t created = 0;
};
/// Of each program, made on several threads; a failure is that of one program alone.
std::vector<Result<ProgramPipelines>> makePipelines(Context& context, std::span<const program::ValidProgram* const> programs);

}  // namespace lockstep::vulkan
