// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/step_result.h"

#include "frontend/trace/at_call.h"

namespace lockstep {

const StepResult& StepResult::or_throw(Where where) const {
  if (failure) detail::atCall(where, [&] { throw Error(failure->diagnostics, failure->exit_code); });
  return *this;
}

}  // namespace lockstep
