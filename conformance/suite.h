// SPDX-License-Identifier: Apache-2.0
// Internal to conformance/: one suite = one file of data and the function that judges its lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "conformance/conformance.h"

namespace lockstep::conformance {

/// Judges the lines of one file; every worker thread has its own.
class Judge {
 public:
  virtual ~Judge() = default;
  /// Throws nlohmann::json::exception for a line that is no JSON object with the fields of its file.
  virtual Outcome judge(const std::string& line) = 0;
};

struct Suite {
  std::string_view file;  ///< without ".jsonl.gz"
  Result<std::unique_ptr<Judge>> (*make)(const Settings& settings);
};

Result<std::unique_ptr<Judge>> makeVerdictJudge(const Settings& settings);
/// Also needs the file cts_expr_cases of the folder.
Result<std::unique_ptr<Judge>> makeExpressionJudge(const Settings& settings);
Result<std::unique_ptr<Judge>> makeTraceJudge(const Settings& settings);
Result<std::unique_ptr<Judge>> makeConsensusJudge(const Settings& settings);

/// "webgpu:shader,validation,expression,call,builtin,abs:values:stage=..." -> "expression,call,builtin,abs"
std::string familyOf(std::string_view test);

}  // namespace lockstep::conformance
