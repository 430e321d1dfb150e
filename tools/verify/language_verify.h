// SPDX-License-Identifier: Apache-2.0
// Compares a language model of a folder with what another program computed with it (language_golden.h): logits and greedy tokens of each
// prompt, as a whole sequence, token by token, in chunks, and in a batch with the others.
#pragma once

#include <string>

#include "ir/support/result.h"

namespace lockstep::tools {

/// `device`: "evaluate" or a selector; `weights`: how it keeps matrices, as nn::WeightFormat::parse() reads it, or "" as the folder says.
/// Prints a line a case, or with `json` one object of all; ExitCode::NumericCheck when the logits of a position are further than 1e-4
/// (relative L2) from the expected ones, or a greedy token is another one.
Result<ExitCode> verifyLanguage(const std::string& folder, const std::string& device, const std::string& weights, bool json);

}  // namespace lockstep::tools
