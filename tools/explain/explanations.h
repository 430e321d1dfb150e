// SPDX-License-Identifier: Apache-2.0
// What codes of errors and rules of warnings mean: the rows of docs/errors.md, and the constraints of ops.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::tools {

struct Explanation {
  std::string meaning;
  std::string page;    ///< "docs/errors.md"
  std::string anchor;  ///< "file.read"; may be empty
};

/// Of "file.read", of an op's constraint "matmul.C3", of a rule "lockstep.index_wraps", and of what fits a row such as `vulkan.<call>`.
std::optional<Explanation> explanationOf(const std::string& code);

/// Every code that has a meaning, but for those of rows with a part that varies.
std::vector<std::string> explainedCodes();

}  // namespace lockstep::tools
