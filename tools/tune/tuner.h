// SPDX-License-Identifier: Apache-2.0
// Measures the plans that a kernel may have, and keeps the fastest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct TimedPlan {
  program::Plan plan;
  double seconds = 0;
  std::string facts = {};  ///< what the driver tells of the kernel, such as its registers
};

struct TunedWork {
  std::string work;              ///< as tables name it
  program::Plan estimate, best;  ///< the estimate is best where no other plan is clearly faster
  double estimate_seconds = 0, best_seconds = 0;
  /// The fastest, and in any case the estimate and the plan that the kernel has; the fastest first.
  std::vector<TimedPlan> finalists = {};
  size_t measured = 0;  ///< plans, the estimate among them
  size_t refused = 0;   ///< plans that the device does not run
  size_t wrong = 0;     ///< plans whose results are not those of the estimate
};

/// Nothing where there is no choice. Codes of the backend, and of the emitters for the estimate.
Result<std::optional<TunedWork>> tuneKernel(Backend& backend, const program::SymbolicKernel& kernel);

}  // namespace lockstep::tools
