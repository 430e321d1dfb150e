// SPDX-License-Identifier: Apache-2.0
#include "frontend/step_result.h"

#include "frontend/at_call.h"

namespace lockstep {

const StepResult& StepResult::or_throw(std::source_location where) const {
  if (failure) detail::atCall(where, [&] { throw Error(failure->diagnostics, failure->exit_code); });
  return *this;
}

}  // namespace lockstep
