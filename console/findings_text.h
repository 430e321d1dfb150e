// SPDX-License-Identifier: Apache-2.0
// Findings of the sanitizer on the command line, in one form wherever they come from.
#pragma once

#include <vector>

#include "frontend/io/jsonl.h"
#include "ir/support/finding.h"
#include "ir/support/result.h"

namespace lockstep::console {

/// As docs/schemas/run.json, train.json and check.json have them.
io::Json findingsJson(const std::vector<Finding>& findings);
/// On stderr, with a last line that counts them.
void printFindings(const std::vector<Finding>& findings);
/// The errors among them, as further errors of a failure that they may explain.
void addFindings(Failure& failure, const std::vector<Finding>& findings);

}  // namespace lockstep::console
