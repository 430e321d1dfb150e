// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <variant>

#include "frontend/train/templates.h"
#include "passes/pipeline.h"

namespace lockstep {

/// The barriers in the text of all kernels of a graph that is planned for this device.
inline int64_t countBarriers(const graph::Graph& graph, const program::DeviceProfile& profile) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  int64_t barriers = 0;
  for (const program::Kernel& kernel : compiled.program.kernels) {
    const auto& module = std::get<kernel::Module>(kernel.code);
    barriers += std::ranges::count(module.instructions, kernel::Op::WorkgroupBarrier, &kernel::Instruction::op);
  }
  return barriers;
}

}  // namespace lockstep
