// SPDX-License-Identifier: Apache-2.0
// Measures the plans that a kernel may have, and keeps the fastest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::tools {

struct TunedWork {
  std::string work;  ///< as tables name it
  program::Plan estimate, best;
  double estimate_seconds = 0, best_seconds = 0;
  size_t measured = 0;  ///< plans, the estimate among them
  size_t refused = 0;   ///< plans that the device does not run
  size_t wrong = 0;     ///< plans whose results are not those of the estimate
};

/// How a plan must be faster than the estimate to be worth a line in a table: below this it is noise.
inline constexpr double kWorthwhile = 0.97;
inline bool isWorthwhile(const TunedWork& work) { return work.best_seconds < kWorthwhile * work.estimate_seconds; }

/// Nothing where there is no choice. Codes of the backend, and of the emitters for the estimate.
Result<std::optional<TunedWork>> tuneKernel(Backend& backend, const program::SymbolicKernel& kernel);

}  // namespace lockstep::tools
