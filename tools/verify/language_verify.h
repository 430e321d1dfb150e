// SPDX-License-Identifier: Apache-2.0
// Compares a language model of a folder with what another program computed with it (language_golden.h): logits and greedy tokens of each
// prompt, as a whole sequence, token by token, in chunks, and in a batch with the others.
#pragma once

#include <string>

#include "ir/support/result.h"
#include "tools/language/weight_choices.h"

namespace lockstep::tools {

/// `device`: "evaluate" or a selector; `kept`: how it keeps matrices, keys and values. Where the expected logits are of other weights than
/// those that were asked for, and for keys and values of 16 bits, those of the evaluator that keeps them so are expected. Prints a line a
/// case, or with `json` one object of all; ExitCode::NumericCheck when the logits of a position are further than 1e-4 (relative L2) from
/// the expected ones, or with keys and values of 16 bits than what rounding changes in one of them, or a greedy token is another one.
Result<ExitCode> verifyLanguage(const std::string& folder, const std::string& device, const WeightChoices& kept, bool json);

}  // namespace lockstep::tools
