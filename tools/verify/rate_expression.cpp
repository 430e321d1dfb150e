// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/rate_expression.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "ir/program/formula.h"
#include "ir/program/program.h"

namespace lockstep::tools {

Result<std::function<double(int64_t)>> parseRate(std::string_view text) {
  const auto at = [](const program::Formula& formula, int64_t step) { return formula(std::array{static_cast<double>(step)}); };
  const Result<program::Formula> formula = program::Formula::parse(text, program::kRateNames);
  if (!formula.ok() || !std::isfinite(at(*formula, 1))) {
    return fail("golden.rate", fmt::format("'{}' is not a learning rate", text), {},
                formula.ok() ? "it is not finite in step 1" : formula.diagnostics().front().message);
  }
  return std::function<double(int64_t)>([formula = *formula, at](int64_t step) { return at(formula, step); });
}

}  // namespace lockstep::tools
