// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what users set, as the passes take it.
#pragma once

#include "frontend/optim/checks.h"
#include "frontend/train/forward.h"
#include "passes/pipeline.h"

namespace lockstep::detail {

/// Without what depends on the device, the optimizer and whether it is the first program.
inline passes::CompileOptions compileOptions(const CompileSettings& settings) {
  passes::CompileOptions options;
  options.disabled = settings.disable;
  options.memory_limit = settings.memory_limit;
  options.check_indices = settings.check_indices;
  checkPrecision(settings.precision);
  if (settings.precision.dtype != DType::F32) options.low = settings.precision.dtype;
  options.strict_f32 = settings.precision.strict;
  if (settings.use_ema) options.parameter_state = passes::kAverageState;
  return options;
}

/// What the program is planned for.
inline program::DeviceProfile profileFor(program::DeviceProfile profile, const passes::CompileOptions& options) {
  if (options.strict_f32) {
    profile.matrix_f16 = {};
    profile.packed_dot = false;
  }
  return profile;
}

}  // namespace lockstep::detail
