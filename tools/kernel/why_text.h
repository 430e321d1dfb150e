// SPDX-License-Identifier: Apache-2.0
// The answer of why() on the command line.
#pragma once

#include <vector>

#include "backends/why.h"
#include "frontend/io/jsonl.h"

namespace lockstep::tools {

/// As docs/schemas/run.json has it.
io::Json whyJson(const std::vector<WhyLine>& lines);
/// On stdout, each line below the one that it is a part of.
void printWhy(const std::vector<WhyLine>& lines);

}  // namespace lockstep::tools
