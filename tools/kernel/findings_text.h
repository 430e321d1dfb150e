// SPDX-License-Identifier: Apache-2.0
// Findings of the sanitizer on the command line.
#pragma once

#include <vector>

#include "frontend/io/jsonl.h"
#include "ir/support/finding.h"

namespace lockstep::tools {

/// As docs/schemas/run.json has them.
io::Json findingsJson(const std::vector<Finding>& findings);
/// On stderr, with a last line that counts them.
void printFindings(const std::vector<Finding>& findings);

}  // namespace lockstep::tools
