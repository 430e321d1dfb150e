// SPDX-License-Identifier: Apache-2.0
// The last frame of a program: whatever went wrong becomes a text on stderr and an exit code.
#pragma once

#include <functional>

#include "ir/support/result.h"

namespace lockstep::console {

/// Runs `body`; prints a Failure or a thrown Error with its source line, an InternalError as a bug of ours. Gives the exit code.
int guardedMain(const std::function<Result<ExitCode>()>& body);

}  // namespace lockstep::console
