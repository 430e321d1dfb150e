// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/program.h"
#include "passes/pipeline.h"

namespace lockstep::passes {

struct EmitConfig {
  program::DeviceProfile profile;
  TemplateSource templates = nullptr;
};

/// Replaces every symbolic kernel by kernel IR: elemental emission, or a template with its hooks filled in. Where planBuffers gave a
/// result the bytes of an operand, both become one read_write binding. A tensor above the binding limit becomes several (windows.h).
/// Kernels with equal text are made once.
Result<program::Program> emit(const program::Program& program, const EmitConfig& config);

}  // namespace lockstep::passes
