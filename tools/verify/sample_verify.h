// SPDX-License-Identifier: Apache-2.0
// Trains samples at full size on a device and on the f64 evaluator side by side, from the same values and batches.
#pragma once

#include <cstdint>
#include <string>

#include "ir/support/result.h"

namespace lockstep::tools {

/// `asked`: a sample, as here or as `lockstep train` has it, or "all". Prints a line per sample, or with `json` one object of all;
/// ExitCode::NumericCheck when one is out of bounds.
Result<ExitCode> verifySamples(const std::string& asked, const std::string& device, int64_t steps, bool json);

}  // namespace lockstep::tools
