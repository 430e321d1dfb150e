// SPDX-License-Identifier: Apache-2.0
// Computes golden cases: through the f64 evaluator of the graph IR, or compiled for a device.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/support/result.h"
#include "tools/verify/golden.h"
#include "tools/verify/golden_compare.h"

namespace lockstep::tools {

/// The code of the Failure of a case whose op or model does not exist (yet).
inline constexpr std::string_view kUnsupportedCode = "verify.unsupported";
Failure unsupported(std::string message);

class GoldenExecutor {
 public:
  virtual ~GoldenExecutor() = default;
  /// As shown to people and scripts: "evaluate", "reference", "vulkan:0".
  [[nodiscard]] virtual std::string device() const = 0;
  /// Whether results are f64 throughout.
  [[nodiscard]] virtual bool exact() const = 0;
  virtual Result<OpOutcome> runOp(const GoldenCase& golden) = 0;
  virtual Result<TrainingOutcome> runTraining(const GoldenTraining& golden) = 0;
};

/// `device`: "evaluate" or a selector of chooseDevice().
Result<std::unique_ptr<GoldenExecutor>> makeGoldenExecutor(const std::string& device);

}  // namespace lockstep::tools
