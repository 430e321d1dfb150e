// SPDX-License-Identifier: Apache-2.0
// Learning rates as golden files state them: arithmetic over the step, "0.005 + (0.0005 - 0.005) * min(step / 1500, 1)".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lockstep::tools {

/// A formula (ir/program/formula.h) of `step`. code "golden.rate".
Result<std::function<double(int64_t)>> parseRate(std::string_view text);

}  // namespace lockstep::tools
