// SPDX-License-Identifier: Apache-2.0
#include "frontend/step_result.h"

namespace lockstep {

const StepResult& StepResult::or_throw() const {
  static constexpr ExitCode kCodes[] = {ExitCode::NumericCheck, ExitCode::DeviceLost, ExitCode::OutOfMemory, ExitCode::Internal,
                                        ExitCode::BadInput};
  if (failure) throw Error(failure->diagnostics, kCodes[static_cast<size_t>(failure->kind)]);
  return *this;
}

}  // namespace lockstep
