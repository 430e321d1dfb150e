// SPDX-License-Identifier: Apache-2.0
// The last frame of a program: whatever went wrong becomes a text on stderr, or a JSON object on stdout, and an exit code.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/support/result.h"

namespace lockstep::console {

/// Gets the arguments without the program's name.
using GuardedBody = std::function<Result<ExitCode>(std::span<const std::string> arguments)>;

/// Runs `body`; prints a Failure or a thrown Error with its source line, an InternalError as a bug of ours. Gives the exit code.
/// With "--json" among the arguments what went wrong is one line on stdout: docs/json.md, "Errors". What was printed and did not arrive is
/// an error as well: code "file.write". What the operating system refused and nobody looked for has the code "system.refused".
int guardedMain(int count, char** arguments, const GuardedBody& body);

}  // namespace lockstep::console
